"""Methods of universal functions."""
