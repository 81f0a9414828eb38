"""The models of this repository: scripts that make them, and the reference they are held to."""
