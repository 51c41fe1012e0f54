"""How the members of a distributed program reach one another: an interface, and what is made of it."""
