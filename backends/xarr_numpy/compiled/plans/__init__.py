"""Plans as machine code: loops with all that is inside, in one module."""
