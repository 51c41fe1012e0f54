"""The base of all operations: a frozen dataclass whose fields are its attributes, with a labelled shape rule.

A shape rule names each of its constraints (`C1`, `C2` …).  The labels stand in the class docstring,
in the check that raises, and in the name of the negative test: one grep finds all three.  They are
the labels of the StableHLO specification where it has one for the constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar, dataclass_transform

from xarr.base.frozen_dataclasses import make_record, record
from xarr.errors import DTypeError, ShapeError, pluralize
from xarr.ir.types import TensorType, TupleType, Type, element_types

if TYPE_CHECKING:
    from xarr.ir.graph import Graph, Node
    from xarr.ir.stablehlo.printer import Printer

OpClass = TypeVar("OpClass", bound="Op")

#: What an op costs for one element of its result, in instructions of a processor: nothing where elements only
#: move, one, or as many as an elementary function, a division or a read at a computed index takes.
FREE: Final = 0
INSTRUCTION: Final = 1
FUNCTION: Final = 5


@record(eq=False)
class Op:
    """Base of all operations.

    Equality and hash come from the class and all fields; the hash is computed once.
    """

    if TYPE_CHECKING:  # which the standard library's dataclass() would declare by itself
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    #: The StableHLO (or CHLO) mnemonic, dialect included.
    name: ClassVar[str]
    #: The function of `xarr.lax` that builds the op, as messages name it; the mnemonic's, unless a class says another.
    lax_name: ClassVar[str]
    #: Whether the value comes from outside the graph.
    is_leaf: ClassVar[bool] = False
    #: Whether no function of `xarr.lax` is it alone: programs in Python are written with its definition.
    is_internal: ClassVar[bool] = False
    #: NumPy's function that computes the same of all element types of NumPy's, if there is one.
    numpy_name: ClassVar[str | None] = None
    #: What an element of the result costs, in instructions.  A reduction costs one for each element it combines.
    cost: ClassVar[int] = FUNCTION
    #: Whether nothing is computed: each element is a number known beforehand, or an operand's at an index that
    #: depends on the index of the result alone.
    moves: ClassVar[bool] = False
    #: Whether the operands have the result's shape, and each element of it depends on theirs at its own index alone.
    is_elementwise: ClassVar[bool] = False
    #: Whether the graphs that it carries are parts of the program, run on whole values, and not for single elements.
    runs_graphs: ClassVar[bool] = False
    #: Whether the result can be the memory of the operand, read in another order.
    is_view: ClassVar[bool] = False
    #: Whether a tuple is not one result, but several.
    has_several_results: ClassVar[bool] = False
    #: Whether an operand that has the result's type already is the result.
    only_changes_type: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__ and "lax_name" not in cls.__dict__:
            cls.lax_name = cls.name.rpartition(".")[2]

    def expect(self, kind: type[OpClass]) -> OpClass:
        """This op, as one of the class that the table in which its rule stands is about."""
        assert isinstance(self, kind), f"wanted {kind.__name__}, got {self}"
        return self

    @property
    def called(self) -> str:
        """The name by which messages call a node of the op."""
        return self.lax_name

    @property
    def title(self) -> str:
        """The name by which pictures call a node of the op."""
        return self.lax_name

    def details(self) -> str:
        """The attributes that are numbers, but for what the type of the result says, for pictures."""
        shown = self.attributes().items()
        return ", ".join(
            f"{name} {_text_of(value)}" for name, value in shown if name != "shape" and _is_plain(value)
        )

    @property
    def is_pure(self) -> bool:
        """Whether two of them over the same operands may be merged into one."""
        return True

    @property
    def is_ordered(self) -> bool:
        """Whether it has an effect: it runs in the order of the program, and even if nothing needs its results."""
        graphs = self.graphs
        return bool(graphs) and any([graph.ordered for graph in graphs])

    def infer(self, *operands: Type) -> Type:
        """The result type; raises ShapeError or DTypeError with the label of the violated constraint."""
        raise NotImplementedError

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The computations that the op carries (body, combiner, comparator), in order."""
        return ()

    def named_graphs(self) -> list[tuple[str, Graph]]:
        """The computations that the op carries, each with the name of its attribute, and its number among several."""
        carried = set(map(id, self.graphs))
        named = []
        for name, value in self.attributes().items():
            if id(value) in carried:
                named.append((name.replace("_", " "), value))
            elif isinstance(value, tuple):
                named += [(f"{name}[{i}]", each) for i, each in enumerate(value) if id(each) in carried]
        return named

    def decompose(self, *operands: Node) -> Node | None:
        """Define the value in terms of other ops; None for an op that is not composite."""
        return None

    def assembly(self, node: Node, printer: Printer) -> str:
        """The StableHLO text of `node` without the `%0 =` before it; leaves have none, being arguments."""
        raise NotImplementedError

    def printed_form(self, node: Node) -> Node | None:
        """An expression over the same operands that is printed instead of `node`, if there is one."""
        return None

    def results(self, node: Node) -> tuple[Type, ...]:
        """The types of the results of `node`, whose own type is their tuple unless there is one."""
        return element_types(node.type) if self.has_several_results else (node.type,)

    def result_number(self, node: Node) -> int | None:
        """Which result of its operand's op `node` is; None for all nodes that compute something."""
        return None

    def remark(self, node: Node) -> str | None:
        """A remark to be printed on a line above `node`, if there is something to say."""
        return None

    def value_name(self) -> str | None:
        """The name of the value in MLIR's text; None if it gets a number."""
        return None

    def result_names(self) -> tuple[str, ...]:
        """The names of several results in MLIR's text; none if they get a number in common."""
        return ()

    def attributes(self) -> dict[str, Any]:
        """Field names and values, in order."""
        own: Any = type(self)
        return {name: getattr(self, name) for name in _field_names(own)}

    def _key(self) -> tuple[Any, ...]:
        own: Any = type(self)
        return (own, *[getattr(self, name) for name in _field_names(own)])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Op) and self._key() == other._key()

    def __hash__(self) -> int:
        try:
            value: int = self.__dict__["_hash"]
        except KeyError:
            value = self.__dict__["_hash"] = hash(self._key())
        return value

    def __getstate__(self) -> dict[str, Any]:
        # A cached hash depends on the process's hash seed and must not travel.
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def fail(self, label: str, message: str) -> NoReturn:
        """Refuse shapes or attributes."""
        raise ShapeError(f"{self.lax_name} [{label}]: {message}")

    def fail_dtype(self, label: str, message: str) -> NoReturn:
        """Refuse element types."""
        raise DTypeError(f"{self.lax_name} [{label}]: {message}")

    def tensors(self, operands: tuple[Type, ...], count: int | None = None) -> tuple[TensorType, ...]:
        """The operand types, all of which must be tensors (`C0`), `count` of them if given.

        Raises DynamicOperands if one has a dynamic dimension: a shape rule is one of static sizes, and
        `infer_type` derives from it what an op makes of dynamic ones.
        """
        if count is not None and len(operands) != count:
            self.fail("C0", f"wanted {pluralize(count, 'operand')}, got {len(operands)}")
        for operand in operands:
            if type(operand) is not TensorType:
                self.fail("C0", f"wanted arrays, got {', '.join(t.short() for t in operands)}")
            if operand.dynamic:
                raise DynamicOperands(self, operands)
        return operands  # type: ignore[return-value]


@cache
def _field_names(kind: type[Op]) -> tuple[str, ...]:
    # fields() goes through all of them each time it is asked.
    return tuple(field.name for field in fields(kind))


def _is_plain(value: Any) -> bool:
    """Whether it is a number other than False, or a tuple of numbers and such tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(each, int) or _is_plain(each) for each in value)
    return isinstance(value, int) and value is not False


def _text_of(value: Any) -> str:
    return f"[{', '.join(map(_text_of, value))}]" if isinstance(value, tuple) else str(value)


class DynamicOperands(ShapeError):
    """`D0`: an op whose rule for dynamic dimensions is not known got an operand that has some."""

    def __init__(self, op: Op, operands: Iterable[Type]) -> None:
        shown = ", ".join(operand.short() for operand in operands)
        super().__init__(
            f"{op.lax_name} [D0]: no rule for dynamic dimensions, got {shown}; make them static first, with "
            "set_dimension_size(x, bound, dimension)"
        )


#: What an op makes of dynamic dimensions: (op, operand types, the result type that their bounds give)
#: -> the result type.  A class of ops has the rule of its nearest base that has one.
DynamicRule = Callable[[Any, tuple[TensorType, ...], Any], Type]
DYNAMIC_RULES: Final[dict[type[Op], DynamicRule]] = {}


def infer_type(op: Op, operands: Sequence[Type]) -> Type:
    """The type of `op` over operands of these types, static or dynamic.  Raises as `Op.infer` does."""
    try:
        return op.infer(*operands)
    except DynamicOperands as refusal:
        return dynamic_type(op, operands, refusal)


def dynamic_type(op: Op, operands: Sequence[Type], refusal: DynamicOperands) -> Type:
    """The type of `op` over operands for which its own rule raised `refusal`; raises that if there is no other."""
    rule = next((DYNAMIC_RULES[base] for base in type(op).__mro__ if base in DYNAMIC_RULES), None)
    tensors = tuple([operand for operand in operands if isinstance(operand, TensorType)])
    if rule is None or len(tensors) != len(operands):
        raise refusal
    result = rule(op, tensors, op.infer(*[operand.bounds for operand in tensors]))
    for type_ in result.elements if isinstance(result, TupleType) else (result,):
        if isinstance(type_, TensorType) and max(type_.shape, default=0) >= 2**31 and type_.dynamic:
            op.fail("D6", f"wanted a size below 2**31 beside dynamic ones, got {type_.short()}")
    return result


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def operation(cls: type[OpClass]) -> type[OpClass]:
    """Class decorator of every op: a record whose equality is the one defined on Op."""
    own: Any = cls
    if own.is_ordered in (False, Op.is_ordered):
        # Asked of each node whenever a graph is looked at: a call less for classes that carry no graphs.
        own.is_ordered = False if own.graphs is Op.graphs else Op.is_ordered
    return make_record(cls, eq=False)
