"""Loop programs as CUDA C++: kernels, and the calls that run them."""
