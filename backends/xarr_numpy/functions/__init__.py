"""Functions of whole arrays that NumPy has no single call for; they write to no argument and keep the element type."""
