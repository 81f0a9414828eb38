"""For tests of the generator: programs run in NumPy, operators held against the reference."""
