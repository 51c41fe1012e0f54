"""The plainest schedule, one iteration after the other: loop programs for machines of which nothing is known."""
