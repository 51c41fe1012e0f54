"""`lower`: a function as a graph, printable after every stage up to the program that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xarr import backend as backends
from xarr.backend import AbstractBackend, Program
from xarr.compiler import pipeline
from xarr.errors import InputError
from xarr.functions._core import as_array, is_weak
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType, Type
from xarr.lax.tracing import check_arity
from xarr.lazy import Handle, trace, wrap
from xarr.records import record
from xarr.shapes import Shape


@record
class Lowered:
    """A traced function on its way to a backend.

    `captured` are the outside values it closes over; `hot` says that it will run many times.
    """

    graph: Graph
    backend: AbstractBackend
    captured: tuple[Node, ...] = ()
    hot: bool = False

    def stage(self, name: str) -> Graph | Program:
        """What the function has become after a stage: traced, simplified, static, decomposed, fused or program.

        It prints as StableHLO, the program as what runs.  Raises ValueRangeError for another name.
        """
        if name == "program":
            return pipeline.compile_graph(self.graph, self.backend, self.hot)
        return pipeline.lower(self.graph, self.backend, name, self.hot)

    def __str__(self) -> str:
        return str(self.graph)

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        """As its graph without source lines, the name of its backend, and the values that it closes over."""
        captured = tuple(wrap(node, self.backend) for node in self.captured)
        return _unpickled, (self.graph, self.backend.name, captured, self.hot)


def _unpickled(graph: Graph, backend: str, captured: tuple[Handle, ...], hot: bool) -> Lowered:
    return Lowered(graph, backends.get(backend), tuple(array._node for array in captured), hot)


def lower(function: Callable[..., Any], *arguments: Any) -> Lowered:
    """Trace `function` on arguments: arrays, whose values are not looked at, or shapes such as "f32[2,3]".

    Python numbers are no parameters of the graph but literals in it: they give way to the element types
    of arrays, as they do outside.
    The function returns an Array or a tuple or list of Arrays.  Raises InputError for anything else.
    """
    if not callable(function):
        raise InputError(f"lower wants a function, got {type(function).__name__}")
    check_arity("lower", "the function", function, len(arguments))
    numbers = {place: value for place, value in enumerate(arguments) if is_weak(value)}
    types = [argument_type(value) for place, value in enumerate(arguments) if place not in numbers]
    backend = next((a._backend for a in arguments if isinstance(a, Handle) and a._backend), None)
    chosen = backend or backends.default()

    def body(*parameters: Any) -> tuple[Handle, ...]:
        given = iter(parameters)
        both = [numbers[place] if place in numbers else next(given) for place in range(len(arguments))]
        return _results(function(*both))

    graph, captured = trace(body, types, chosen, getattr(function, "__name__", "main"))
    return Lowered(graph, chosen, captured)


def argument_type(argument: Any) -> Type:
    """The type of a parameter that stands for `argument`."""
    if isinstance(argument, str):
        argument = Shape.parse(argument)
    if isinstance(argument, Shape):
        return TensorType(tuple(argument.dimensions), argument.dtype, tuple(argument.dynamic_dimensions))
    return as_array(argument)._node.type


def _results(value: Any) -> tuple[Handle, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(v, Handle | int | float | complex) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise InputError(f"a traced function returns an Array or a tuple or list of Arrays, got {kinds}")
    return tuple(as_array(v) for v in values)
