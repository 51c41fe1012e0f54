"""What backends and the frontend share of the host itself: memory for results, and LAPACK's routines."""
