"""Functions that explain a call or a program: the broadcasts, an index, a gather or scatter, the explicit program."""
