"""How each op is written as a call of NumPy: one module for each family of ops."""
