"""Which operations run as one group: the stage `fused`."""
