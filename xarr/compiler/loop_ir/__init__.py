"""Loop programs, for no machine in particular: scalars, index maps, loads, stores and loops over them."""
