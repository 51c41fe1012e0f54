"""The kernels of a text, and the calls that run a loop program by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.loops import Buffer

#: Threads of a block, and blocks of a grid at most: each thread takes further points in steps of all threads.
BLOCK: Final = 256
MOST_BLOCKS: Final = 2**16
#: Bytes of shared memory that a kernel may declare on every device.
SHARED_BYTES: Final = 48 << 10
#: What stands before the name of a kernel.
DECLARATION: Final = 'extern "C" __global__ void'

#: Bytes of the longest vector: arrays of kernels with vectors lie at multiples of that.
VECTOR_NBYTES: Final = 16


@dataclass(frozen=True)
class KernelCall:
    """A launch of a kernel of a text.

    * `name` - of the kernel,
    * `buffers` - that it takes, and behind them `sizes`, numbers that depend on shapes,
    * `blocks` - how many run it,
    * `copied` - the scratch buffer that it copies to an output, the first of its buffers, if it does nothing else.  It
      may be left out where the output has the memory of the scratch buffer,
    * `over` - the inputs whose memory that scratch buffer may have: nothing reads them once it is written,
    * `copies` - the buffer that it fills with another one, and that, if it does nothing else,
    * `definition` - the text of the kernel from behind its name on,
    * `label` - the operations that it computes, for comments,
    * `has_vectors` - whether its buffers must lie at multiples of `VECTOR_NBYTES`.
    """

    name: str
    buffers: tuple[Buffer, ...]
    blocks: int
    copied: Buffer | None = None
    sizes: tuple[np.generic, ...] = ()
    definition: str = ""
    label: str = ""
    has_vectors: bool = False
    over: frozenset[Buffer] = frozenset()
    copies: tuple[Buffer, Buffer] | None = None


@dataclass(frozen=True)
class KernelSource:
    """A loop program as CUDA C++, and the calls that run it, one after the other."""

    text: str
    calls: tuple[KernelCall, ...]


def with_comments(text: str, notes: Mapping[str, str]) -> str:
    """A text with a comment before each of these kernels."""
    for name, note in notes.items():
        head = f"{DECLARATION} {name}("
        text = text.replace(head, f"// {note}\n{head}")
    return text
