"""NumPy's functions beyond the Array API standard, a file for each topic of NumPy's reference.

`xarr/__init__.py` imports each module when one of its names is first asked for.
"""
