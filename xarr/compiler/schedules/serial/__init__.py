"""How groups run one iteration after the other: the plainest loop programs, for machines of which nothing is known."""
