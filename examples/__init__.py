"""Example programs and the data they read."""
