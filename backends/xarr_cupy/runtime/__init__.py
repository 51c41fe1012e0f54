"""Programs on a device: arrays, launches, commands, and how a plan becomes them."""
