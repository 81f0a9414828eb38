"""Graph to graph: each pass makes the model cheaper and leaves its results as they are."""
