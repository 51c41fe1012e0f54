"""On PYTHONPATH: this process, and those that it starts, have CuPy on memory of the host."""

from tests.cuda.host_wheel import wheel

wheel.load()
