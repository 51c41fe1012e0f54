"""Graphs as StableHLO text.  Nothing here imports the ops or the graph, so both can import it."""
