"""Program to files: C++ sources, the weights blob and the manifest."""
