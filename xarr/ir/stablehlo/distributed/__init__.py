"""What modules say of the members that run them: collectives, meshes, parts of arrays."""
