"""The class Array: operators, methods, and what it answers to NumPy, einops and pandas."""
