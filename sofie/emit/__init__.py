"""Program to files: C++ sources, the weights file and the manifest."""
