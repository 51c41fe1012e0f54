"""Ways to combine the updates of scatters."""
