"""The schedule of GPUs: a thread for each element, which folds what belongs to it in registers."""
