"""What is wrong with a model."""


class ModelError(Exception):
    """A model that can't be read or compiled; the message says why and what to do about it."""
