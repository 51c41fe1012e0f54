"""Factories of element-wise functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import _getframe as frame_of
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.backend import default_device
from xarr.base.at_once.numpy_calls import NumPyCall
from xarr.base.at_once.obstacles import obstacles
from xarr.base.configuration import current as config
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.calls.call_plans import (
    CallPlan,
    Plans,
    Rule,
    bits_type,
    integer_type,
    number,
    real_type,
    repeats,
    same,
    to_float,
    to_real_float,
)
from xarr.calls.host_functions import EITHER, HostFunction, functions
from xarr.calls.operands import DType, as_array, broadcast_operands, is_weak, observers
from xarr.calls.small_values import apply_ufunc, apply_ufunc_of_two
from xarr.calls.ufuncs import BinaryUFunc, UnaryUFunc, attach, with_options
from xarr.dtypes import ANY, BOOL, COMPLEX, FLOAT, INTEGER, NUMBER, PREDICATE, info
from xarr.errors import XarrError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.source import caller
from xarr.ir.types import TensorType, has_plain_elements
from xarr.lax.core import ArrayLike, follow, scalar_constant, scalar_node
from xarr.runtime import handles
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.small_ops import (
    Location,
    compute,
    compute_beside_number,
    known_ufunc,
    small_call,
    small_ops,
    state_at_once,
    ufunc_of,
)
from xarr.runtime.trace_stack import recording

_NO_OPTIONS: Final[dict[str, Any]] = {}
UnaryFunction = UnaryUFunc["Array"]
BinaryFunction = BinaryUFunc["Array"]


#: Functions of two floats that NumPy has, but for the sign of zeros, by their names.
_EXTREMES_OF_TWO: Final = {"maximum": np.maximum, "minimum": np.minimum}


class UFuncs:
    """The ufuncs that compute the op of a function for small arrays, once they have, by the codes of element types.

    by_char: functions of the values; hosts: the same in machine code, as far as that is there.
    """

    __slots__ = ("by_char", "hosts", "name", "operands")

    def __init__(self, name: str, operands: int) -> None:
        self.name, self.operands = name, operands
        self.by_char: dict[str, Callable[..., Any]] = {}
        self.hosts: tuple[HostFunction, ...] = ()

    def learn(self, call: Callable[..., Any], char: str) -> None:
        """Let `call` compute for operands of the element type with this code."""
        if char in self.by_char:
            return
        self.by_char[char] = call
        quick = _EXTREMES_OF_TWO.get(self.name) if char in "fd" else None
        unless = 0 if quick is None else EITHER
        call = quick or call
        for host in self.hosts:
            if host.row.call is call and host.row.unless == unless:
                host.takes_too(char)
                return
        row = NumPyCall(call, char, self.operands, numbers=True, alike=True, unless=unless)
        made = HostFunction(row, is_for_python=False)
        functions.append(made)
        self.hosts = (*self.hosts, made)


# --- factories -----------------------------------------------------------------------------------


#: The module that has the rows, by whose name they are pickled.
_HOME: Final = "xarr.numpy_api.mathematics.elementwise"


#: The element type that an op computes in, by the types that it accepts.
_RULES: Final[dict[frozenset[DType], Rule]] = {
    ANY: same,
    BOOL | INTEGER: bits_type,
    FLOAT: to_real_float,
    FLOAT | COMPLEX: to_float,
    INTEGER: integer_type,
    NUMBER: number,
}


def _documentation(name: str, op: Elementwise, summary: str | None) -> str:
    """The summary and the source of a function; a class of ops calls its two operands x and y."""
    if summary is None:
        summary = type(op).__doc__ or ""
        if op.arity == 2:
            summary = re.sub(r"\bx\b", "x1", re.sub(r"\by\b", "x2", summary))
    return f"{summary}\n\nSource: NumPy and the Array API standard, {name}; lax.{op.lax_name}."


def _apply_one(plans: Plans, plan: CallPlan, node: Node, source: Location) -> Array:
    """The Array of the op over an operand that is prepared by `plan`: with its value if that is computed at once."""
    op, device = plans.op, node.device
    is_recorded = device is not None and not device.backend.computes_small_ops
    table = None if is_recorded or plan.is_large else small_ops()
    if table is not None:
        array = compute(table, op, (node,), source, plan.steps, plan)
        if array is not None:
            plan.small = small_call(table, plan, node)
            plan.ufunc = ufunc_of(table, plan, node)
            return array
    elif not is_recorded or plan.is_large:
        plans.note_recorded(plan)
    return wrap(Node(op, (follow(plan.steps[0], node, source),), plan.type, source))


def _apply_two(
    plans: Plans,
    plan: CallPlan,
    values: tuple[Any, Any],
    first: Node | None,
    second: Node | None,
    source: Location,
) -> Array:
    """As `_apply_one`, for two values, of which numbers have no node yet."""
    op, beside = plans.op, first or second
    device = None if beside is None else beside.device
    is_recorded = device is not None and not device.backend.computes_small_ops
    table = None if is_recorded or observers or plan.is_large else small_ops()
    if table is not None and beside is not None and (first is None or second is None):
        number = scalar_constant(values[0 if first is None else 1], plan.dtype)
        array = compute_beside_number(table, op, beside, number, first is None, source, plan.steps, plan)
        if array is not None:
            plan.small = small_call(table, plan, first, second)
            return array
    if first is None:
        first = scalar_node(values[0], plan.dtype, source)
    if second is None:
        second = scalar_node(values[1], plan.dtype, source)
    if table is not None:
        array = compute(table, op, (first, second), source, plan.steps, plan)
        if array is not None:
            plan.small = small_call(table, plan, first, second)
            plan.ufunc = ufunc_of(table, plan, first)
            return array
    elif not is_recorded or plan.is_large:
        plans.note_recorded(plan)
    left, right = plan.steps
    first = follow(left, first, source) if left else first
    second = follow(right, second, source) if right else second
    return wrap(Node(op, (first, second), plan.type, source))


def _is_constant(x: object) -> bool:
    """Whether x is an Array made of constants alone whose value is known."""
    return isinstance(x, Handle) and x._value is not None and x._device is None


def _learn_later(ufuncs: UFuncs, op: Op, plan: CallPlan, operands: int) -> None:
    """Let the ufunc of an op compute it from now on, if there is one, at the second call: it takes a while to find.

    For what no equal shapes have shown it of: of numbers, and of constants alone.
    """
    table = small_ops()
    if table is None or _converts(plan) or not has_plain_elements(plan.dtype):
        return
    types = (TensorType((1,), plan.dtype),) * operands
    plan.ufunc = known_ufunc(table, op, types, default_device()) or False
    if plan.ufunc:
        ufuncs.learn(plan.ufunc, plan.dtype.char)


def _converts(plan: CallPlan) -> bool:
    return any([type(step) is ops.Convert for own in plan.steps for step, _ in own])


def unary(name: str, op: Elementwise, rule: Rule | None = None, summary: str | None = None) -> UnaryFunction:
    """The function of an op under NumPy's `name`; the rule and the summary are the op's unless given."""
    plans, ufuncs = Plans(name, op, rule or _RULES[op.accepts]), UFuncs(name, 1)

    def function(x: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x,), out, options)
        try:
            if plans.are_recorded and (array := plans.repeat_one(x, frame_of(1))) is not None:
                return array
            if ufuncs.hosts and (type(x) is handles._array_class or type(x) is np.ndarray) and not obstacles:
                for host in ufuncs.hosts:
                    if (array := host.run((x,), _NO_OPTIONS)) is not None:
                        return array
                if (array := apply_ufunc(ufuncs.by_char, x, frame_of(1), ufunc)) is not None:
                    return array
            node: Any = getattr(x, "_shown", None)
            if node is None and isinstance(x, Handle):
                node = x._node
            plan = None if node is None else plans.get(node.type)
            source = caller()
            small = None if plan is None else plan.small  # once, as another thread may set it
            if small is not None and small.state is state_at_once():
                array = small.one(node, source)
                if array is not None:
                    return array
            if plan is None or (plan.settings is not None and not config.is_in(plan.settings)):
                plan, (node,) = plans.prepare(x)
            elif plan.ufunc is None and not obstacles and _is_constant(x):
                _learn_later(ufuncs, op, plan, 1)
            result = _apply_one(plans, plan, node, source)
            if plan.ufunc and not any(plan.steps) and has_plain_elements(plan.dtype):
                ufuncs.learn(plan.ufunc, plan.dtype.char)
            return result
        except XarrError as error:
            shorten(error, name)
            raise

    function.__doc__ = _documentation(name, op, summary)
    ufunc: UnaryFunction = attach(function, 1, name, _HOME)
    return ufunc


def binary(
    name: str, op: Elementwise, rule: Rule | None = None, summary: str | None = None
) -> BinaryFunction:
    """The function of an op under NumPy's `name`; the rule and the summary are the op's unless given."""
    plans, ufuncs = Plans(name, op, rule or _RULES[op.accepts]), UFuncs(name, 2)

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        try:
            if plans.are_recorded and (array := plans.repeat_two(x1, x2, frame_of(1))) is not None:
                return array
            if ufuncs.hosts and not obstacles:
                for host in ufuncs.hosts:
                    if (array := host.run((x1, x2), _NO_OPTIONS)) is not None:
                        return array
                if (array := apply_ufunc_of_two(ufuncs.by_char, x1, x2, frame_of(1), ufunc)) is not None:
                    return array
            first: Any = getattr(x1, "_shown", None)
            second: Any = getattr(x2, "_shown", None)
            if first is None and isinstance(x1, Handle):
                first = x1._node
            if second is None and isinstance(x2, Handle):
                second = x2._node
            plan = plans.get(
                (type(x1) if first is None else first.type, type(x2) if second is None else second.type)
            )
            source = caller()
            small = None if plan is None or observers else plan.small
            if plan is not None and small is not None and small.state is state_at_once():
                if first is None:
                    array = small.compute_beside(second, scalar_constant(x1, plan.dtype), True, source)
                elif second is None:
                    array = small.compute_beside(first, scalar_constant(x2, plan.dtype), False, source)
                else:
                    array = small.two(first, second, source)
                if array is not None:
                    if plan.ufunc is None and (first is None or second is None):
                        _learn_later(ufuncs, op, plan, 2)
                    return array
            if (
                plan is None
                or (recording and (getattr(x1, "_weak", None) or getattr(x2, "_weak", None)))
                or observers
                or (plan.settings is not None and not config.is_in(plan.settings))
            ):
                plan, (first, second) = plans.prepare(x1, x2)
            elif plan.ufunc is None and not obstacles and (_is_constant(x1) or _is_constant(x2)):
                _learn_later(ufuncs, op, plan, 2)
            result = _apply_two(plans, plan, (x1, x2), first, second, source)
            if plan.ufunc and not _converts(plan) and has_plain_elements(plan.dtype):
                ufuncs.learn(plan.ufunc, plan.dtype.char)
            return result
        except XarrError as error:
            shorten(error, name)
            raise

    function.__doc__ = _documentation(name, op, summary)
    ufunc: BinaryFunction = attach(function, 2, name, _HOME)
    repeats[ufunc] = plans.repeat_two
    return ufunc


def comparison(name: str, direction: str, summary: str) -> BinaryFunction:
    rule = same if direction in ("EQ", "NE") else real_type
    compare = binary(name, ops.Compare(direction), rule, summary)
    repeat = repeats[compare]

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        try:
            if (array := repeat(x1, x2, frame_of(1))) is not None:
                return array
            first, second = getattr(x1, "_node", None), getattr(x2, "_node", None)
            # Any number can be compared with floats.
            is_usual = (
                second is None and first is not None and type(x2) in (int, float) and first.dtype.kind == "f"
            )
            if not is_usual and (first is None or second is None or first.type is not second.type):
                outcome = _compare_out_of_range(x1, x2, direction)
                if outcome is not None:
                    return lax.full_like(as_array(x2 if is_weak(x1) else x1), outcome, PREDICATE)
                if _signs_differ(x1, x2):
                    return _compare_signs(direction, *broadcast_operands(name, as_array(x1), as_array(x2)))
            return compare(x1, x2)
        except XarrError as error:
            shorten(error, name)
            raise

    function.__doc__ = compare.__doc__
    ufunc: BinaryFunction = attach(function, 2, name, _HOME)
    repeats[ufunc] = repeat
    return ufunc


def _compare_out_of_range(x1: ArrayLike, x2: ArrayLike, direction: str) -> bool | None:
    """The outcome of comparing an integer array with a Python int that its type cannot hold."""
    if isinstance(x1, int) and not is_weak(x2) and is_weak(x1):
        swapped = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
        return _compare_out_of_range(x2, x1, swapped)
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
