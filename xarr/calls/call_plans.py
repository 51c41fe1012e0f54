"""Plans of element-wise calls: what comes before an op of operands of some types, kept, and followed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.broadcasting import Alignment
from xarr.base.configuration import current as config
from xarr.base.host_arrays import scalar_kind
from xarr.base.typing import Array
from xarr.calls.operands import (
    DType,
    align,
    are_in_force,
    dtype_or_kind,
    is_weak,
    node_of,
    observe,
    observers,
    promoted_type,
)
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, default_float, promote, widen_dtype
from xarr.errors import DTypeError, XarrError
from xarr.ir.graph import Node
from xarr.ir.op import Op, infer_type
from xarr.ir.source import known_files, locate
from xarr.ir.types import TensorType, Type, replace_at
from xarr.lax.core import ArrayLike, broadcast_step, convert_step, scalar_node
from xarr.runtime import handles
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle, common_device, wrap
from xarr.runtime.small_ops import MOST_BYTES, Location, SmallCall, Steps, is_few_pending, records_all
from xarr.runtime.trace_stack import recording

Rule = Callable[[str, DType], DType]

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
_config: Final = config.__dict__
_overrides: Final = config._overrides.get
#: Tuples of operands for which a function keeps its plan.
_PLANS_KEPT: Final = 1024


class CallPlan:
    """The preparation of operands of some types for an op.

    dtype: the element type of Python numbers; steps: the conversion and the broadcast of each operand; type: that of
    the result; alignment: that of the shapes, None for equal ones; settings: those that it was made under, by
    identity, None if it holds under any; small: the function that computed the last call at once, if there is one that
    may do so again; ufunc: NumPy's that computed it, if it may do so for operands of any shapes, False if none may;
    is_large: whether no such call is computed at once; recorded_in: the settings, by identity, under which the op is
    recorded, whatever values the operands have, None before that is known of any.
    """

    # No record, whose attributes would be looked up in a dict at each call.
    __slots__ = (
        *("alignment", "dtype", "is_large", "recorded_in", "settings", "small"),
        *("steps", "type", "ufunc"),
    )
    small: SmallCall | None
    recorded_in: tuple[object, object] | None
    ufunc: Any

    def __init__(
        self,
        dtype: DType,
        steps: tuple[Steps, ...],
        type: Type,
        alignment: Alignment | None,
        settings: tuple[object, object] | None,
        is_large: bool,
    ) -> None:
        self.dtype, self.steps, self.type = dtype, steps, type
        self.alignment, self.settings, self.is_large = alignment, settings, is_large
        self.small = self.recorded_in = self.ufunc = None


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
    holds, result = holds and not any(steps), infer_type(op, types)
    arrays = [each for each in (*operands, result) if isinstance(each, TensorType)]
    is_large = max([each.nbytes for each in arrays], default=0) > MOST_BYTES
    return CallPlan(dtype, tuple(steps), result, alignment, None if holds else config.state(), is_large)


def _computed_type(name: str, rule: Rule, operands: Sequence[DType | type[Any]]) -> DType:
    if rule is to_real_float:
        return _real_float_of(name, operands)
    return rule(name, promoted_type(operands))


class Plans(dict[Any, CallPlan]):
    """The plans of one function, by the operand of one, by a pair of the operands of two."""

    def __init__(self, name: str, op: Op, rule: Rule) -> None:
        self.name, self.op, self.rule = name, op, rule
        #: Whether an op has been recorded that no operands would have computed at once.
        self.are_recorded = False

    def prepare(self, *values: ArrayLike) -> tuple[CallPlan, tuple[Node, ...]]:
        """The plan for these operands, kept for the next ones of their types, and their nodes."""
        operands: list[Operand] = []
        made: dict[int, Node] = {}
        for index, value in enumerate(values):
            if isinstance(value, Handle):
                operands.append(value._weak or value._node.tensor_type)
            elif is_weak(value):
                operands.append(scalar_kind(value))
            elif lies_on_device(value):
                moved = from_device_array(value, None)
                operands.append(moved._node.tensor_type)
                values = replace_at(values, index, moved)
            else:
                made[index] = node = node_of(value, None, common_device(values))
                operands.append(node.tensor_type)
        key = tuple(operands) if len(operands) > 1 else operands[0]
        new = self.get(key)
        if new is None or not (new.settings is None or config.is_in(new.settings)):
            new = plan(self.name, self.op, self.rule, operands)
            if config.broadcasting != "warn":  # which warns each time
                if len(self) >= _PLANS_KEPT:
                    self.clear()
                self[key] = new
        nodes = tuple(
            [made.get(index) or node_of(value, new.dtype, None) for index, value in enumerate(values)]
        )
        if observers and new.alignment is not None:
            converted = [lax.convert_element_type(wrap(node), new.dtype)._node for node in nodes]
            observe(self.name, new.alignment, (new.dtype,) * len(nodes), tuple(converted))
        return new, nodes

    def note_recorded(self, plan: CallPlan) -> None:
        """Say that the op was recorded just now by a plan, for other reasons than the device of its operands."""
        state = config.state()
        if (plan.is_large or records_all()) and not recording and not observers:
            plan.recorded_in, self.are_recorded = state, True

    def repeat_one(self, x: Any, frame: FrameType) -> Array | None:
        """The Array of the op over `x`, recorded as before, at the user's line that `frame` is at or was called by.

        None where the op may be computed at once, and for what no call was recorded of before.
        """
        node: Any = x._shown if type(x) is handles._array_class else None
        plan = None if node is None else self.get(node.type)
        if plan is None or not are_in_force(plan.recorded_in):
            return None
        code = frame.f_code
        location = (code, frame.f_lasti) if code.co_filename in known_files else locate(frame)
        for step, type_ in plan.steps[0]:
            node = Node(step, (node,), type_, location)
        return wrap(Node(self.op, (node,), plan.type, location))

    def repeat_two(self, x1: Any, x2: Any, frame: FrameType) -> Array | None:
        """As `repeat_one`, for two operands, of which one may be a Python number or an array of NumPy's."""
        kind = handles._array_class
        first: Any = x1._shown if type(x1) is kind else None
        second: Any = x2._shown if type(x2) is kind else None
        if first is not None and second is not None:
            plan = self.get((first.type, second.type))
        else:
            if first is None:
                if second is None or x2._value is not None:
                    return None
                if type(x1) is kind:
                    first = x1._node
            elif type(x2) is kind:
                if x1._value is not None:
                    return None
                second = x2._node
            one: Operand = type(x1) if first is None else first.type
            other: Operand = type(x2) if second is None else second.type
            if one is np.ndarray:
                one = TensorType(x1.shape, x1.dtype)
            elif other is np.ndarray:
                other = TensorType(x2.shape, x2.dtype)
            plan = self.get((one, other))
        if plan is None or (state := plan.recorded_in) is None:
            return None
        if state[0] is not _config["_global"] or state[1] is not _overrides() or recording or observers:
            return None
        for node in (first, second):
            if node is not None and node.value is None and is_few_pending(node) and not records_all():
                return None
        if type(x1) is np.ndarray:
            first = node_of(x1, None, second.device)
        elif type(x2) is np.ndarray:
            second = node_of(x2, None, first.device)
        code = frame.f_code
        location = (code, frame.f_lasti) if code.co_filename in known_files else locate(frame)
        try:
            if first is None:
                first = _number_at(location, x1, plan.dtype)
            elif second is None:
                second = _number_at(location, x2, plan.dtype)
        except XarrError:
            return None  # which says it again, with the name of the function
        left, right = plan.steps
        for step, type_ in left:
            first = Node(step, (first,), type_, location)
        for step, type_ in right:
            second = Node(step, (second,), type_, location)
        return wrap(Node(self.op, (first, second), plan.type, location))


#: By an instruction, as its address: the number that it computes with, its element type, and the constant.
_numbers: Final[dict[int, tuple[Any, CodeType, int, DType, Node]]] = {}
_MOST_NUMBERS: Final = 1024


def _number_at(location: Location, number: Any, dtype: DType) -> Node:
    """The constant of a Python number, the same for the same number at the same line.  Raises as `scalar_node`."""
    if location is None:
        return scalar_node(number, dtype)
    code, instruction = location
    key = id(code) + instruction
    known = _numbers.get(key)
    if known is not None:
        own, own_code, own_instruction, own_dtype, node = known
        # By identity, which tells -0.0 from 0.0.
        if own is number and own_code is code and own_instruction == instruction and own_dtype is dtype:
            return node
    node = scalar_node(number, dtype, location)
    if len(_numbers) >= _MOST_NUMBERS:
        _numbers.clear()
    _numbers[key] = number, code, instruction, dtype, node
    return node


#: A function of two operands, and what records it again: `Plans.repeat_two`.
Repeat = Callable[[Any, Any, FrameType], "Array | None"]
repeats: Final[dict[Any, Repeat]] = {}


def repeat_of(function: Callable[..., Any]) -> Repeat:
    """Give what records a function of two operands again; for others what never does."""
    return repeats.get(function, _never)


def _never(x1: Any, x2: Any, frame: FrameType) -> None:
    """Leave a call to others."""
