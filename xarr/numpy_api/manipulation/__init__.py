"""Array manipulation: shapes, joining, splitting, padding, elements added and removed."""
