"""Graph to graph: what is rewritten before operations are grouped."""
