"""What ops on small arrays that are computed at once need to know: what stands against it, and how NumPy is silent."""
