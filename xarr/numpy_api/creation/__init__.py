"""Array creation: from values, data, ranges and formulas."""
