"""Data, training and evaluation of the jet taggers."""
