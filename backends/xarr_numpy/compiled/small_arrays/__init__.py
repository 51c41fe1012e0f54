"""Methods of the frontend's Array as machine code: operators, elements and parts of small values.

They do what is certain at once, by calls of CPython's and NumPy's own functions, and call the Python method for all
else.
"""
