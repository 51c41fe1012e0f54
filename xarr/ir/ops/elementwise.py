"""Element-wise operations: result[i] depends on operand[i] alone, and all shapes are equal.

Accepted element types are those of the StableHLO specification; `chlo.*` operations are the ones JAX
emits for functions which StableHLO lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from xarr.dtypes import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    PREDICATE,
    SIGNED,
    SUB_BYTE,
    UNSIGNED,
    element_type,
)
from xarr.errors import ValueRangeError
from xarr.ir.graph import Node
from xarr.ir.op import INSTRUCTION, Op, operation
from xarr.ir.ops.creation import Constant
from xarr.ir.ops.movement import BroadcastInDim
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer

Accepted = frozenset[np.dtype[Any]]


def _kinds(accepted: Accepted) -> str:
    parts = (("bool", BOOL), ("integer", INTEGER), ("float", FLOAT), ("complex", COMPLEX))
    names = [name for name, members in parts if members <= accepted]
    if accepted >= SIGNED and not accepted >= INTEGER:
        names.insert(0, "signed integer")
    return " or ".join(names) or ", ".join(sorted(map(str, accepted)))


class Elementwise(Op):
    """Base of the regular families.

    * C1: every operand has an element type that the operation accepts.
    * C2: all operands have the same element type.
    * C3: all operands have the same shape.
    """

    is_elementwise = True
    accepts: ClassVar[Accepted]
    arity: ClassVar[int]
    #: Whether loops have a formula for the op, though it is defined in terms of others, and so want it whole.
    has_formula: ClassVar[bool] = False
    #: Whether the result depends on how many bits the elements have.
    counts_bits: ClassVar[bool] = False

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The result's element type for operands of element type `dtype`."""
        return dtype

    def infer(self, *operands: Type) -> Type:
        first = operands[0]
        if len(operands) != self.arity or type(first) is not TensorType:
            self.tensors(operands, self.arity)
            raise AssertionError("unreachable: tensors() refuses tuples and tokens")
        for operand in operands:
            if operand is not first:
                self._refuse_mixture(self.tensors(operands, self.arity))
        if first.dtype not in self.accepts and not self._accepts_narrow(first.dtype):
            self.fail_dtype("C1", f"wanted {_kinds(self.accepts)} elements, got {first.short()}")
        dtype = self.result_dtype(first.dtype)
        return first if dtype is first.dtype else first.with_dtype(dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)

    def _accepts_narrow(self, dtype: np.dtype[Any]) -> bool:
        """Whether the operation is one of elements of less than 8 bits, done by the type that computes with them."""
        return not self.counts_bits and dtype in SUB_BYTE and SUB_BYTE[dtype] in self.accepts

    def _refuse_mixture(self, operands: tuple[TensorType, ...]) -> None:
        shown = ", ".join(operand.short() for operand in operands)
        if len({operand.dtype for operand in operands}) > 1:
            self.fail_dtype(
                "C2", f"wanted operands of one element type, got {shown}; convert_element_type one"
            )
        self.fail("C3", f"wanted operands of one shape, got {shown}; broadcast_in_dim makes them equal")


class Unary(Elementwise):
    """x -> f(x), of floats and complex numbers unless a class says others."""

    arity = 1
    accepts = FLOAT | COMPLEX


class Binary(Elementwise):
    """(x, y) -> f(x, y).

    The laws hold for all x, y, z of one type, of sums and products of floats up to rounding.
    """

    arity = 2
    #: f(f(x, y), z) = f(x, f(y, z)).
    associative: ClassVar[bool] = False
    #: f(x, y) = f(y, x).
    commutative: ClassVar[bool] = False
    #: f(x, x) = x.
    idempotent: ClassVar[bool] = False

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        """The scalar e of element type `dtype` with f(x, e) = f(e, x) = x for each x; None if there is none."""
        return None


def regular_ops(family: type[Elementwise] = Elementwise) -> Iterator[type[Elementwise]]:
    """The operations of the regular families, or of one."""
    for op in family.__subclasses__():
        if "name" in vars(op):
            yield op
        yield from regular_ops(op)


def numpy_functions() -> dict[type[Elementwise], str]:
    """The regular operations that NumPy has a function for, with its name."""
    return {op: op.numpy_name for op in regular_ops() if op.numpy_name}


#: The directions of a comparison, each with NumPy's function for it.
DIRECTIONS: Final = {
    "EQ": "equal",
    "NE": "not_equal",
    "GE": "greater_equal",
    "GT": "greater",
    "LE": "less_equal",
    "LT": "less",
}


@operation
class Compare(Binary):
    """x direction y, by IEEE 754 or, with `total_order`, by -NaN < -inf < … < -0 < +0 < … < inf < NaN.

    float8 types without -0 have one NaN, which has no sign: it comes last, where sorts put NaN.  StableHLO asks for
    IEEE 754's totalOrder, which goes by signs and leaves that open; XLA goes by the bits, those of -0 elsewhere, and
    has the NaN first.

    * C4: complex numbers compare by EQ and NE only.
    * C5: the total order is defined for floats only.
    """

    direction: str
    total_order: bool = False
    name = "stablehlo.compare"
    accepts = ANY
    cost = INSTRUCTION

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ValueRangeError(
                f"compare: wanted a direction of {', '.join(DIRECTIONS)}, got {self.direction!r}"
            )

    @property
    def lax_name(self) -> str:  # type: ignore[override]
        return self.direction.lower() + ("_to" if self.total_order else "")

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype in COMPLEX and self.direction not in ("EQ", "NE"):
            self.fail_dtype("C4", f"complex numbers have no order, got {dtype}; compare abs, real or imag")
        if self.total_order and dtype not in FLOAT:
            self.fail_dtype(
                "C5", f"the total order is defined for floats only, got {dtype}; use {self.direction.lower()}"
            )
        return PREDICATE

    def assembly(self, node: Node, printer: Printer) -> str:
        compared = self._compare_type(node.operands[0].dtype)
        operands = f"{self.direction}, {printer.names(node.operands)}, {compared}"
        return f"{self.name} {operands} : {printer.signature(node)}"

    def _compare_type(self, dtype: np.dtype[Any]) -> str:
        if self.total_order:
            return "TOTALORDER"
        if dtype in SIGNED:
            return "SIGNED"
        return "UNSIGNED" if dtype in UNSIGNED | BOOL else "FLOAT"


@operation
class Select(Op):
    """on_true where pred holds, else on_false.

    * C1: pred has bool elements.
    * C2: on_true and on_false have one type.
    * C3: pred has their shape.
    """

    name = "stablehlo.select"
    is_elementwise = True
    cost = INSTRUCTION

    def infer(self, *operands: Type) -> Type:
        pred, on_true, on_false = self.tensors(operands, 3)
        if pred.dtype != PREDICATE:
            self.fail_dtype(
                "C1", f"wanted a bool predicate, got {pred.short()}; compare it with 0, e.g. ne(p, 0)"
            )
        if on_true is not on_false:
            self.fail("C2", f"wanted two branches of one type, got {on_true.short()} and {on_false.short()}")
        if pred.shape != on_true.shape:
            self.fail("C3", f"wanted pred of shape {on_true.shape}, got {pred.short()}")
        return on_true

    def assembly(self, node: Node, printer: Printer) -> str:
        _, on_true, on_false = (operand.type for operand in node.operands)
        if not on_true is on_false is node.type:  # some have dynamic dimensions that others have not
            return printer.functional(node)
        return f"{self.name} {printer.names(node.operands)} : {node.operands[0].type}, {node.type}"


@operation
class Convert(Op):
    """Convert elements to `dtype`.

    Floats become integers by dropping the fraction, with NaN -> 0 and values out of range going to the
    nearest end of the type (XLA's rule on the CPU); anything but zero is True; complex numbers lose
    their imaginary part on the way to a real type; integers wrap.
    """

    dtype: np.dtype[Any]
    name = "stablehlo.convert"
    lax_name = "convert_element_type"
    is_elementwise = True
    cost = INSTRUCTION
    only_changes_type = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        return operand.with_dtype(self.dtype)

    def printed_form(self, node: Node) -> Node | None:
        """`x != 0` for complex x as bool, of which XLA would drop the imaginary part first."""
        (operand,) = node.operands
        if self.dtype != PREDICATE or operand.dtype not in COMPLEX:
            return None
        zero = Node(Constant.of(np.zeros((), operand.dtype)))
        zeros = Node(BroadcastInDim(operand.shape, ()), (zero,)) if operand.shape else zero
        return Node(Compare("NE"), (operand, zeros))

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)


@operation
class BitcastConvert(Op):
    """Read the same bits as `dtype`.

    A narrower type appends a dimension of the ratio of the widths, a wider one eats the last dimension;
    the first of the narrow elements holds the lowest bits.

    * C1: bool and complex take part in no change of width; complex and real never mix.
    * C2: for a wider type, the last dimension equals the ratio of the widths.
    * C3: one width is a multiple of the other.
    """

    dtype: np.dtype[Any]
    name = "stablehlo.bitcast_convert"
    lax_name = "bitcast_convert_type"
    cost = INSTRUCTION

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        old, new = element_type(operand.dtype).bits, element_type(self.dtype).bits
        rigid = BOOL | COMPLEX
        if old != new and (operand.dtype in rigid or self.dtype in rigid):
            self.fail_dtype("C1", f"no bitcast of another width from {operand.short()} to {self.dtype}")
        if (operand.dtype in COMPLEX) != (self.dtype in COMPLEX):
            self.fail_dtype(
                "C1", f"no bitcast between complex and real, got {operand.short()} to {self.dtype}"
            )
        if old == new:
            return operand.with_dtype(self.dtype)
        if max(old, new) % min(old, new):
            self.fail_dtype("C3", f"no bitcast of {old} bits to {new}, got {operand.short()} to {self.dtype}")
        if old > new:
            return TensorType((*operand.shape, old // new), self.dtype)
        if not operand.shape or operand.shape[-1] != new // old:
            self.fail(
                "C2", f"wanted a last dimension of {new // old} to form {self.dtype}, got {operand.short()}"
            )
        return TensorType(operand.shape[:-1], self.dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)


@operation
class ReducePrecision(Op):
    """Round to a float format with the given exponent and mantissa bits, and back.

    * C1: the operand has float elements.
    * C2: exponent_bits >= 1.
    * C3: mantissa_bits >= 0.
    """

    exponent_bits: int
    mantissa_bits: int
    name = "stablehlo.reduce_precision"
    is_elementwise = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        if operand.dtype not in FLOAT:
            self.fail_dtype("C1", f"wanted float elements, got {operand.short()}")
        if self.exponent_bits < 1:
            self.fail("C2", f"wanted exponent_bits >= 1, got {self.exponent_bits}")
        if self.mantissa_bits < 0:
            self.fail("C3", f"wanted mantissa_bits >= 0, got {self.mantissa_bits}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node, f"format = e{self.exponent_bits}m{self.mantissa_bits}")
