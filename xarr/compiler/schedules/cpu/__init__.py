"""Loop programs for processors: lanes, packed panels, tiles and blocks that stay in a cache, threads."""
