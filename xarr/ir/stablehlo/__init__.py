"""Graphs as StableHLO text.

`xarr.ir.graph` and the ops use `printer` and `literals`, which therefore import neither.
"""
