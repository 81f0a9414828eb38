"""The graph's element types, symbolic sizes, scalar expressions, tensors and kernel calls.

Leftmost of all packages: it imports none of the others.
"""
