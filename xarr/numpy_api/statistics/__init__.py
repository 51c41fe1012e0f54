"""Statistics: reductions, order statistics, correlations, histograms."""
