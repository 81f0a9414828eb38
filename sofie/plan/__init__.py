"""Graph to program: lowering, and what lives when."""
