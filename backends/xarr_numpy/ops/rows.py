"""What a row of the backend's table is: an op class, and the function that writes a node of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from xarr.ir.graph import Node
from xarr.ir.op import Op

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Writer: TypeAlias = "Callable[[Emitter, Node], str]"
Rows: TypeAlias = "dict[type[Op], Writer]"
