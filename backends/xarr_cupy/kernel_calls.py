"""The kernels of a text, and the calls that run a loop program by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xarr.compiler.loop_ir.loops import Buffer


@dataclass(frozen=True)
class KernelCall:
    """A launch of a kernel of a text.

    * `name` - of the kernel,
    * `buffers` - that it takes, and behind them `sizes`, numbers that depend on shapes,
    * `blocks` - how many run it,
    * `copied` - the scratch buffer that it copies to an output, the first of its buffers, if it does nothing else.  It
      may be left out where the output has the memory of the scratch buffer,
    * `definition` - the text of the kernel from behind its name on.
    """

    name: str
    buffers: tuple[Buffer, ...]
    blocks: int
    copied: Buffer | None = None
    sizes: tuple[np.generic, ...] = ()
    definition: str = ""


@dataclass(frozen=True)
class KernelSource:
    """A loop program as CUDA C++, and the calls that run it, one after the other."""

    text: str
    calls: tuple[KernelCall, ...]
