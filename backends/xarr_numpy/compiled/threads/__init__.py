"""Threads that share the iterations of a phase without Python, and estimates of what is worth sharing."""
