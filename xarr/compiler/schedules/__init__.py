"""How the loops of groups run, by kind of machine."""
