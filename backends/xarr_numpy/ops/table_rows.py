"""The rows of the backend's table: an op class, and the function that writes a step of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from xarr.compiler.plan.program_plan import Step
from xarr.ir.op import Op

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Writer: TypeAlias = "Callable[[Emitter, Step], str]"
Rows: TypeAlias = "dict[type[Op], Writer]"
