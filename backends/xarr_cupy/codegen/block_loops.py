"""Kernels that run one after the other, again and again, as one kernel of one block: a loop with barriers inside.

A kernel whose grid is one block runs as it is written: `blockIdx.x` is 0, and a barrier of the block is what the end of
a launch would be.  What one of them writes the next one reads from the cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from xarr_cupy.codegen.kernel_calls import KernelCall
from xarr_cupy.codegen.spelling import helpers_of, type_name

#: The name of the kernel.
NAME: Final = "xarr_loop"
#: What the names of its pointers begin with, and no name of a buffer, which they become one after the other.
_POINTER: Final = "pointer"
_SHARED: Final = re.compile(r"__shared__ (?:__align__\(16\) )?(\w+) \w+\[(\d+)\]")
#: Bytes of the types whose names are not NumPy's.
_WIDTHS: Final = {"float": 4, "double": 8}


def shared_bytes(calls: Sequence[KernelCall]) -> int:
    """The bytes of shared memory that kernels declare together."""
    declared = [each for call in calls for each in _SHARED.findall(call.definition)]
    return sum((_WIDTHS.get(type) or np.dtype(type).itemsize) * int(size) for type, size in declared)


def emit_block_loop(calls: Sequence[KernelCall], parameters: Sequence[Sequence[int]], count: int) -> str:
    """The text of a kernel that takes `count` pointers, and behind them how many times it runs the kernels of `calls`.

    parameters: for each call and each of its buffers the number of the pointer.
    """
    types: list[str] = [""] * count
    lines = ["    for (int64 step = 0; step < times; step++) {"]
    for call, numbers in zip(calls, parameters, strict=True):
        head, body = call.definition.split(" {\n", 1)
        lines.append("        {")
        for buffer, number in zip(call.buffers, numbers, strict=True):
            types[number] = type_name(buffer.dtype)
            lines.append(f"            auto {buffer.name} = {_POINTER}{number};")
        declared = head.removeprefix("(").removesuffix(")").split(", ")[len(call.buffers) :]
        for declaration, size in zip(declared, call.sizes, strict=True):
            lines.append(f"            const {declaration} = {int(size)};")
        lines += [f"        {line}" for line in body.rstrip().removesuffix("}").splitlines()]
        lines += ["        }", "        __syncthreads();"]
    pointers = ", ".join([f"{type} *{_POINTER}{number}" for number, type in enumerate(types)])
    text = "\n".join([f'extern "C" __global__ void {NAME}({pointers}, int64 times) {{', *lines, "    }\n}\n"])
    return f"{helpers_of(text)}\n{text}"
