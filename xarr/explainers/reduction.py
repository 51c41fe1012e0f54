"""`explain_reduce`: which elements of an array each element of a sum, maximum and the like is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from xarr.dtypes import default_float, total_type, xla_name
from xarr.explainers.operands import axes_of, check_flag, choose, dtype_of, programs, read
from xarr.explanation.sheet import Listing
from xarr.explanation.sheets.reduction import REDUCTIONS, ReductionSheet
from xarr.numpy_api.statistics import reductions

_OTHER_NAMES: Final = {"+": "sum", "*": "prod", "product": "prod"}


@dataclass(frozen=True, repr=False)
class ReductionExplanation(ReductionSheet):
    """The axes that a reduction combines and those that it keeps, with element types and in XLA's words."""

    @property
    def _result_dtype(self) -> str | None:
        dtype = dtype_of(self.operand)
        if dtype is None:
            return None
        if self.op in ("any", "all"):
            return "pred"
        if self.op == "mean":
            return xla_name(dtype if dtype.kind not in "biu" else default_float())
        return xla_name(total_type(dtype) if self.op in ("sum", "prod") else dtype)

    def codes(self) -> tuple[Listing, ...]:
        codes = super().codes()
        if not codes:
            return ()
        axis = None if len(self.axes) == len(self.operand.shape) else self.axes
        function = getattr(reductions, self.op)
        made = programs(
            lambda x: function(x, axis=axis, keepdims=self.keepdims), [self.operand], [self.operand.name]
        )
        return (*codes, *made)


def explain_reduce(
    x: Any, axis: Any = None, op: str = "sum", keepdims: bool = False, name: str = "x"
) -> ReductionExplanation:
    """Explain `x.sum(axis)`, or another reduction: which axes go, what each element of the result is made of.

    x: an array, or a shape as a tuple of ints or as text such as "f32[3,4]".  axis: an int, several or None, for all.
    op: sum, prod, mean, max, min, any or all; also the symbols `+` and `*`.  name: how `x` is called.

    Raises InputError for another op, for axes out of range and for one named twice.
    """
    known = choose("explain_reduce", "op", op, (*REDUCTIONS, *_OTHER_NAMES))
    keeps = check_flag("explain_reduce", "keepdims", keepdims)
    operand = read("explain_reduce", name, x)
    axes = axes_of("explain_reduce", axis, len(operand.shape))
    return ReductionExplanation(_OTHER_NAMES.get(known, known), operand, axes, keeps)
