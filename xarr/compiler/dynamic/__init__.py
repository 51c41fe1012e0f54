"""Dynamic sizes made static: arrays of their bounds, and the live sizes beside them."""
