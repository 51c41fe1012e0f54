"""The networks of `benchmarks/networks.py`: what is computed, forward and by training steps."""

from network_rows.row import Network
from network_rows.sequences import NETWORKS as SEQUENCES
from network_rows.vision import NETWORKS as VISION

ROWS: tuple[Network, ...] = (*VISION, *SEQUENCES)

__all__ = ["ROWS", "Network"]
