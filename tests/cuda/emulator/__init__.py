"""A CUDA device on the host, for tests: the text of kernels is compiled by g++ and run thread by thread.

It finds accesses outside of an argument or of shared memory, barriers that not all threads of a block reach, shared
memory that is read before it is written (its bytes are 0xFF, a NaN), wrong numbers of arguments, and, by running the
threads in three orders, many a race.  It says nothing of speed, of the order in which memory becomes visible, of
library calls or streams.
"""
