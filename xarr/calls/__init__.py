"""From a call in NumPy's style to the explicit level: arguments, promotion, broadcasting, `out=`."""
