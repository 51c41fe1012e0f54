"""Whole loops as one native loop: which can be, and what is taken out of their steps for it."""
