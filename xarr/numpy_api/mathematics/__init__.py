"""Mathematical, logical and bitwise functions, element by element, and what is made of them."""
