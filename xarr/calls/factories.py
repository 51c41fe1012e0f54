"""Factories of element-wise functions, and the element type that each computes in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from sys import _getframe as frame_of
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.backend import default_device
from xarr.base.at_once.obstacles import obstacles
from xarr.base.broadcasting import Alignment
from xarr.base.configuration import current as config
from xarr.base.host_arrays import host_array, scalar_kind
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.calls.host_functions import UFuncs
from xarr.calls.operands import (
    DType,
    align,
    as_array,
    broadcast_operands,
    dtype_or_kind,
    is_weak,
    node_of,
    observe,
    observers,
    promoted_type,
)
from xarr.calls.small_values import apply_ufunc, apply_ufunc_of_two
from xarr.calls.ufuncs import BinaryUFunc, UnaryUFunc, attach, with_options
from xarr.dtypes import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    PREDICATE,
    default_float,
    info,
    promote,
    widen_dtype,
)
from xarr.errors import DTypeError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op, infer_type
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.source import caller
from xarr.ir.types import TensorType, Type, has_plain_elements
from xarr.lax.core import ArrayLike, broadcast_step, convert_step, follow, scalar_constant, scalar_node
from xarr.runtime import handles
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, common_device, wrap
from xarr.runtime.small_ops import (
    MOST_BYTES,
    Location,
    SmallCall,
    Steps,
    compute,
    compute_beside_number,
    known_ufunc,
    small_call,
    small_ops,
    state_at_once,
    ufunc_of,
)
from xarr.runtime.trace_stack import recording

Rule = Callable[[str, DType], DType]
_NO_OPTIONS: Final[dict[str, Any]] = {}
UnaryFunction = UnaryUFunc["Array"]
BinaryFunction = BinaryUFunc["Array"]


# --- which element type a function computes in ------------------------------------------------------


def same(name: str, dtype: DType) -> DType:
    return dtype


def to_float(name: str, dtype: DType) -> DType:
    """Floats and complexes stay; integers go to the float NumPy picks: 8 bits float16, 16 bits float32."""
    if widen_dtype(dtype) in FLOAT or dtype in COMPLEX:
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
    return _real_float_of(name, [dtype_or_kind(value) for value in values])


def _real_float_of(name: str, operands: Sequence[DType | type[Any]]) -> DType:
    common = to_real_float(name, promoted_type(operands))
    if len(operands) < 2 or any(isinstance(each, type) or each not in INTEGER for each in operands):
        return common
    return reduce(promote, [to_real_float(name, each) for each in operands if not isinstance(each, type)])


def quotient_type(name: str, dtype: DType) -> DType:
    return dtype if widen_dtype(dtype) in FLOAT or dtype in COMPLEX else default_float()


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
    if dtype not in BOOL and widen_dtype(dtype) not in INTEGER:
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


# --- plans -----------------------------------------------------------------------------------------


#: What a plan depends on: the type of an array, or bool, int, float or complex for a Python number.
Operand = TensorType | type[Any]
#: Tuples of operands for which a function keeps its plan.
_PLANS_KEPT: Final = 1024


class CallPlan:
    """The preparation of operands of some types for an op.

    dtype: the element type of Python numbers; steps: the conversion and the broadcast of each operand; type: that of
    the result; alignment: that of the shapes, None for equal ones; settings: those that it was made under, by
    identity, None if it holds under any; small: the function that computed the last call at once, if there is one that
    may do so again; ufunc: NumPy's that computed it, if it may do so for operands of any shapes, False if none may.
    """

    # No record, whose attributes would be looked up in a dict at each call.
    __slots__ = ("alignment", "dtype", "settings", "small", "steps", "type", "ufunc")
    small: SmallCall | None
    ufunc: Any

    def __init__(
        self,
        dtype: DType,
        steps: tuple[Steps, ...],
        type: Type,
        alignment: Alignment | None,
        settings: tuple[object, object] | None,
    ) -> None:
        self.dtype, self.steps, self.type = dtype, steps, type
        self.alignment, self.settings, self.small = alignment, settings, None
        self.ufunc = None


def plan(name: str, op: Op, rule: Rule, operands: Sequence[Operand]) -> CallPlan:
    """The plan for operands of these types under the settings in force.

    Raises DTypeError where there is no element type to compute in, BroadcastError if the shapes do not fit, or if
    `config.broadcasting` refuses the broadcast.
    """
    dtype = _computed_type(name, rule, [each if isinstance(each, type) else each.dtype for each in operands])
    types: list[TensorType] = []
    steps: list[Steps] = []
    holds = True
    for operand in operands:
        if isinstance(operand, type):
            operand, holds = TensorType((), dtype), False
        steps.append((convert_step(operand, dtype),) if operand.dtype != dtype else ())
        types.append(steps[-1][-1][1] if steps[-1] else operand)
    alignment = None
    if len(types) == 2 and types[0].shape != types[1].shape:
        alignment = align(name, (types[0].shape, types[1].shape), (dtype, dtype))
        for index, dimensions in enumerate(alignment.dimensions):
            if types[index].shape != alignment.result:
                step = broadcast_step(types[index], alignment.result, dimensions)
                steps[index], types[index] = (*steps[index], step), step[1]
    holds = holds and not any(steps)
    return CallPlan(dtype, tuple(steps), infer_type(op, types), alignment, None if holds else config.state())


def _computed_type(name: str, rule: Rule, operands: Sequence[DType | type[Any]]) -> DType:
    if rule is to_real_float:
        return _real_float_of(name, operands)
    return rule(name, promoted_type(operands))


class _Plans(dict[Any, CallPlan]):
    """The plans of one function, by the operand of one, by a pair of the operands of two."""

    def __init__(self, name: str, op: Op, rule: Rule) -> None:
        self.name, self.op, self.rule = name, op, rule

    def prepare(self, *values: ArrayLike) -> tuple[CallPlan, tuple[Node, ...]]:
        """The plan for these operands, kept for the next ones of their types, and their nodes."""
        operands: list[Operand] = []
        device = None
        for index, value in enumerate(values):
            if isinstance(value, Handle):
                operands.append(value._weak or value._node.tensor_type)
            elif is_weak(value):
                operands.append(scalar_kind(value))
            elif lies_on_device(value):
                moved = from_device_array(value, None)
                operands.append(moved._node.tensor_type)
                values = (*values[:index], moved, *values[index + 1 :])
            else:
                host = host_array(value)
                operands.append(TensorType(host.shape, host.dtype))
                values, device = (*values[:index], host, *values[index + 1 :]), common_device(values)
        new = plan(self.name, self.op, self.rule, operands)
        if config.broadcasting != "warn":  # which warns each time
            if len(self) >= _PLANS_KEPT:
                self.clear()
            self[tuple(operands) if len(operands) > 1 else operands[0]] = new
        nodes = tuple([node_of(value, new.dtype, device) for value in values])
        if observers and new.alignment is not None:
            converted = [lax.convert_element_type(wrap(node), new.dtype)._node for node in nodes]
            observe(self.name, new.alignment, (new.dtype,) * len(nodes), tuple(converted))
        return new, nodes


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


def _apply_one(op: Op, plan: CallPlan, node: Node, source: Location) -> Array:
    """The Array of `op` over an operand that is prepared by `plan`: with its value if that is computed at once."""
    device = node.device
    is_recorded = device is not None and not device.backend.computes_small_ops
    table = None if is_recorded or plan.type.nbytes > MOST_BYTES else small_ops()
    if table is not None:
        array = compute(table, op, (node,), source, plan.steps, plan)
        if array is not None:
            plan.small = small_call(table, plan, node)
            plan.ufunc = ufunc_of(table, plan, node)
            return array
    return wrap(Node(op, (follow(plan.steps[0], node, source),), plan.type, source))


def _apply_two(
    op: Op, plan: CallPlan, values: tuple[Any, Any], first: Node | None, second: Node | None, source: Location
) -> Array:
    """As `_apply_one`, for two values, of which numbers have no node yet."""
    beside = first or second
    device = None if beside is None else beside.device
    is_recorded = device is not None and not device.backend.computes_small_ops
    table = None if is_recorded or observers or plan.type.nbytes > MOST_BYTES else small_ops()
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
    plans, ufuncs = _Plans(name, op, rule or _RULES[op.accepts]), UFuncs(name, 1)

    def function(x: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x,), out, options)
        if ufuncs.hosts and type(x) is handles._array_class and not obstacles:
            for host in ufuncs.hosts:
                if (array := host.run((x,), _NO_OPTIONS)) is not None:
                    return array
            if (array := apply_ufunc(ufuncs.by_char, x, frame_of(1), ufunc)) is not None:
                return array
        try:
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
            result = _apply_one(op, plan, node, source)
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
    plans, ufuncs = _Plans(name, op, rule or _RULES[op.accepts]), UFuncs(name, 2)

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        if ufuncs.hosts and not obstacles:
            for host in ufuncs.hosts:
                if (array := host.run((x1, x2), _NO_OPTIONS)) is not None:
                    return array
            if (array := apply_ufunc_of_two(ufuncs.by_char, x1, x2, frame_of(1), ufunc)) is not None:
                return array
        try:
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
            result = _apply_two(op, plan, (x1, x2), first, second, source)
            if plan.ufunc and not _converts(plan) and has_plain_elements(plan.dtype):
                ufuncs.learn(plan.ufunc, plan.dtype.char)
            return result
        except XarrError as error:
            shorten(error, name)
            raise

    function.__doc__ = _documentation(name, op, summary)
    ufunc: BinaryFunction = attach(function, 2, name, _HOME)
    return ufunc


def comparison(name: str, direction: str, summary: str) -> BinaryFunction:
    rule = same if direction in ("EQ", "NE") else real_type
    compare = binary(name, ops.Compare(direction), rule, summary)

    def function(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: Any) -> Any:
        if options or out is not None:
            return with_options(ufunc, (x1, x2), out, options)
        try:
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
