"""How element-wise functions are made: which element type each computes in, and factories of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.config import current as config
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    PREDICATE,
    default_float,
    info,
    promote,
    widened,
)
from xarr.errors import DTypeError
from xarr.functions._core import (
    DType,
    as_array,
    broadcasted,
    broadcasted_nodes,
    common_dtype,
    is_weak,
    nodes_of,
    observers,
)
from xarr.functions._ufuncs import Binary, Unary, attach, with_options
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.source import caller
from xarr.ir.types import Type
from xarr.lax.core import ArrayLike, scalar_node
from xarr.lazy import Handle, recording, wrap
from xarr.records import record

if TYPE_CHECKING:
    from xarr.array import Array

Rule = Callable[[str, DType], DType]
UnaryFunction = Unary["Array"]
BinaryFunction = Binary["Array"]


# --- which element type a function computes in ------------------------------------------------------


def same(name: str, dtype: DType) -> DType:
    return dtype


def to_float(name: str, dtype: DType) -> DType:
    """Floats and complexes stay; integers go to the float NumPy picks: 8 bits float16, 16 bits float32."""
    if widened(dtype) in FLOAT or dtype in COMPLEX:
        return dtype
    if default_float() == np.float32:
        return default_float()
    return np.dtype(np.float16 if dtype.itemsize == 1 else np.float32 if dtype.itemsize == 2 else np.float64)


def to_real_float(name: str, dtype: DType) -> DType:
    if dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got {dtype}; complex numbers have no such function")
    return to_float(name, dtype)


def common_real_float(name: str, *values: ArrayLike) -> DType:
    """The float type of several operands.

    Integers become floats one by one, before they are promoted: int8 with uint8 is float16 with float16,
    as NumPy picks it, though the two promote to int16, which alone would be float32.
    """
    common = to_real_float(name, common_dtype(*values))
    strong = [as_array(value).dtype for value in values if not is_weak(value)]
    if len(strong) < 2 or len(strong) < len(values) or any(dtype not in INTEGER for dtype in strong):
        return common
    return reduce(promote, [to_real_float(name, dtype) for dtype in strong])


def quotient_type(name: str, dtype: DType) -> DType:
    return dtype if widened(dtype) in FLOAT or dtype in COMPLEX else default_float()


def number(name: str, dtype: DType) -> DType:
    if dtype in BOOL:
        raise DTypeError(f"{name}: not defined for bools; use ^ or logical_not, or convert to ints")
    return dtype


def real_type(name: str, dtype: DType) -> DType:
    if dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got {dtype}; take real, imag or abs first")
    return dtype


def real_number(name: str, dtype: DType) -> DType:
    dtype = real_type(name, dtype)
    return np.dtype(np.int8) if dtype in BOOL else dtype


def bits_type(name: str, dtype: DType) -> DType:
    if dtype not in BOOL and widened(dtype) not in INTEGER:
        raise DTypeError(
            f"{name}: wanted integers or bools, got {dtype}; comparisons need "
            "parentheses, as in (x > 0) & (y > 0); x.astype(int) converts numbers"
        )
    return dtype


def integer_type(name: str, dtype: DType) -> DType:
    dtype = bits_type(name, dtype)
    return np.dtype(np.int8) if dtype in BOOL else dtype


def power_type(name: str, dtype: DType) -> DType:
    return np.dtype(np.int8) if dtype in BOOL else dtype


# --- factories -----------------------------------------------------------------------------------


#: The module that has the rows, by whose name they are pickled.
_HOME: Final = "xarr.functions.elementwise_functions"
#: From a type of operands that an op takes as they are, to that of its result: found once.
_Results = dict[Type, Type]


def _keep(results: _Results, operand: Type, result: Type) -> None:
    if len(results) >= _PLANS_KEPT:
        results.clear()
    results[operand] = result


def unary(name: str, op: Op, rule: Rule, summary: str) -> UnaryFunction:
    results: _Results = {}

    def function(x: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x,), out, options)
        node = getattr(x, "_node", None)
        type = None if node is None else results.get(node.type)
        if node is not None and type is not None:
            return wrap(Node(op, (node,), type))
        array = as_array(x)
        node = array._node
        own = node.dtype
        dtype = rule(name, own)
        if dtype != own:
            return wrap(Node(op, (Node(ops.Convert(dtype), (node,)),)))
        found = Node(op, (node,))
        _keep(results, node.type, found.type)
        return wrap(found)

    function.__doc__ = f"{summary}\n\nSource: NumPy and the Array API standard, {name}; lax.{op.lax_name}."
    ufunc: UnaryFunction = attach(function, 1, name, _HOME)
    return ufunc


#: Python numbers that a plan can be made for; bool and the subclasses of these take the long way.
_NUMBERS: Final = (int, float)
#: Pairs of operand types for which a function keeps a plan.
_PLANS_KEPT: Final = 1024
#: Conversions and broadcasts, each an op and the type that it gives.
Steps = tuple[tuple[Op, Type], ...]


@record(eq=False)
class _Plan:
    """What becomes of two operands of some types before an op: found the long way once, and the same each time.

    settings: those in force, by identity; dtype: what a Python number becomes first; left, right: the steps for
    each operand; type: that of the result.
    """

    settings: tuple[object, object]
    dtype: DType
    left: Steps
    right: Steps
    type: Type

    @staticmethod
    def of(node: Node, x1: ArrayLike, x2: ArrayLike, dtype: DType) -> _Plan | None:
        """The plan by which `node` was made; None if another pair of such operands might need another."""
        if recording or config.broadcasting != "numpy" or not isinstance(x1, Handle) | isinstance(x2, Handle):
            return None
        left, right = (_steps(end, x) for end, x in zip(node.operands, (x1, x2), strict=True))
        return None if left is None or right is None else _Plan(config.state(), dtype, left, right, node.type)

    def followed(self, op: Op, x1: Any, x2: Any, first: Node | None, second: Node | None) -> Array | None:
        """The result for other operands of the same types, or their nodes; None if the plan does not hold now."""
        state = config.state()
        if recording or observers or state[0] is not self.settings[0] or state[1] is not self.settings[1]:
            return None
        place = caller()
        first = scalar_node(x1, self.dtype) if first is None else first
        second = scalar_node(x2, self.dtype) if second is None else second
        for step, type in self.left:
            first = Node(step, (first,), type, place)
        for step, type in self.right:
            second = Node(step, (second,), type, place)
        return wrap(Node(op, (first, second), self.type, place))


def _steps(end: Node, value: ArrayLike) -> Steps | None:
    """The ops that made `end` of an Array or a Python number, which has another value each time."""
    start = value._node if isinstance(value, Handle) else None
    if start is None and type(value) not in _NUMBERS:
        return None
    found: list[tuple[Op, Type]] = []
    while end is not start and len(end.operands) == 1:
        found.append((end.op, end.type))
        end = end.operands[0]
    is_number = start is None and type(end.op) is ops.Constant and not end.shape
    return tuple(found[::-1]) if end is start or is_number else None


def binary(name: str, op: Op, rule: Rule, direct: frozenset[DType], summary: str) -> BinaryFunction:
    """`direct` holds the element types for which the rule changes nothing: the fast path."""
    plans: dict[tuple[Any, Any], _Plan] = {}
    results: _Results = {}

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        first = getattr(x1, "_node", None)
        second = getattr(x2, "_node", None)
        if first is not None and second is not None and first.type is second.type:
            type_of_result = results.get(first.type)
            if type_of_result is not None:
                return wrap(Node(op, (first, second), type_of_result))
            if first.type.dtype in direct:
                node = Node(op, (first, second))
                _keep(results, first.type, node.type)
                return wrap(node)
        key = (type(x1) if first is None else first.type, type(x2) if second is None else second.type)
        plan = plans.get(key)
        found = None if plan is None else plan.followed(op, x1, x2, first, second)
        if found is not None:
            return found
        dtype = common_real_float(name, x1, x2) if rule is to_real_float else rule(name, common_dtype(x1, x2))
        nodes = nodes_of((x1, x2), dtype)
        node = Node(op, broadcasted_nodes(name, nodes))
        plan = _Plan.of(node, x1, x2, dtype)
        if plan is not None:
            if len(plans) >= _PLANS_KEPT:
                plans.clear()
            plans[key] = plan
        return wrap(node)

    function.__doc__ = f"{summary}\n\nSource: NumPy and the Array API standard, {name}; lax.{op.lax_name}."
    ufunc: BinaryFunction = attach(function, 2, name, _HOME)
    return ufunc


def comparison(name: str, direction: str, summary: str) -> BinaryFunction:
    direct = BOOL | NUMBER if direction in ("EQ", "NE") else BOOL | INTEGER | FLOAT
    rule = same if direction in ("EQ", "NE") else real_type
    compare = binary(name, ops.Compare(direction), rule, direct, summary)

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        first, second = getattr(x1, "_node", None), getattr(x2, "_node", None)
        if first is None or second is None or first.type is not second.type:
            outcome = _outside(x1, x2, direction)
            if outcome is not None:
                return lax.full_like(as_array(x2 if is_weak(x1) else x1), outcome, PREDICATE)
            if _signs_differ(x1, x2):
                return _compare_signs(direction, *broadcasted(name, as_array(x1), as_array(x2)))
        return compare(x1, x2)

    function.__doc__ = compare.__doc__
    ufunc: BinaryFunction = attach(function, 2, name, _HOME)
    return ufunc


def _outside(x1: ArrayLike, x2: ArrayLike, direction: str) -> bool | None:
    """The outcome of comparing an integer array with a Python int that its type cannot hold."""
    if isinstance(x1, int) and not is_weak(x2) and is_weak(x1):
        swapped = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
        return _outside(x2, x1, swapped)
    if not (isinstance(x2, int) and is_weak(x2)) or is_weak(x1):
        return None
    dtype = as_array(x1).dtype
    if dtype not in INTEGER or info(dtype).min <= x2 <= info(dtype).max:
        return None
    return {"EQ": False, "NE": True}.get(direction, (x2 > 0) == (direction in ("LT", "LE")))


_MIXED: Final = ({np.dtype(np.int64), np.dtype(np.uint64)},)


def _signs_differ(x1: ArrayLike, x2: ArrayLike) -> bool:
    first, second = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    return first is not second and {first, second} in _MIXED


def _compare_signs(direction: str, x1: Array, x2: Array) -> Array:
    """int64 with uint64, exactly: no common type holds both, so negative values are told apart first."""
    signed, swap = (x1, False) if x1.dtype == np.int64 else (x2, True)
    other = x2 if signed is x1 else x1
    negative = lax.lt(signed, 0)
    as_unsigned = lax.convert_element_type(signed, np.uint64)
    pair = (other, as_unsigned) if swap else (as_unsigned, other)
    compared = wrap(Node(ops.Compare(direction), (pair[0]._node, pair[1]._node)))
    below = direction == "NE" or direction in (("GT", "GE") if swap else ("LT", "LE"))
    return lax.select(negative, lax.full_like(compared, below), compared)
