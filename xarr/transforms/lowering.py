"""`lower`: a function as a graph, printable after every stage up to the program that runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from xarr import backend as backends
from xarr.backend import AbstractBackend, Program
from xarr.base.frozen_dataclasses import record
from xarr.calls.operands import as_array, is_weak
from xarr.compiler import pipeline, programs
from xarr.compiler.plan.loop_programs import LoopPrograms
from xarr.compiler.plan.program_plan import Plan
from xarr.dtypes import canonical
from xarr.errors import InputError
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType, Type
from xarr.lax.tracing import check_arity
from xarr.runtime.check_flags import attach, flags_of, unread
from xarr.runtime.evaluation import buffer_of, execute, results_of
from xarr.runtime.handles import Handle, common_device, wrap
from xarr.runtime.materialisation import evaluate
from xarr.runtime.trace_to_graph import trace
from xarr.shapes import Shape, Sizes, check_sizes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class ShapeDtypeStruct:
    """The shape and the element type of an array, without its values; a leaf of pytrees, as arrays are.

    Raises ShapeError for sizes that are none, DTypeError for another element type.  Source: jax.ShapeDtypeStruct.
    """

    # No dataclass, since a dataclass is a container.
    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sizes, dtype: DTypeLike) -> None:
        self.shape = check_sizes(shape, name="shape")
        self.dtype = canonical(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise InputError("an array without dimensions has no len()")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


@record
class Compiled:
    """A program that a backend made, as a function of such arrays as it was made for.

    `run` takes them; `text` is what runs.  Source: jax.stages.Compiled.
    """

    run: Callable[..., Any]
    text: str

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    def as_text(self) -> str:
        """The text of the program that runs."""
        return self.text


@record
class Lowered:
    """A traced function on its way to a backend.

    `captured` are the outside values it closes over; `hot` says that it will run many times, `donated` which
    parameters its program may write over.
    """

    graph: Graph
    backend: AbstractBackend
    captured: tuple[Node, ...] = ()
    hot: bool = False
    donated: tuple[int, ...] = ()

    def stage(self, name: str) -> Graph | LoopPrograms | Plan | Program:
        """The function after a stage: traced, simplified, static, decomposed, fused, loops, plan or program.

        It prints as StableHLO, then as the loops of its groups, as buffers and steps, and as what runs.  Raises
        ValueRangeError for another name.
        """
        return pipeline.stage_of(self.graph, self.backend, name, self.hot, self.donated)

    def as_text(self) -> str:
        """The graph as a StableHLO module.  Source: jax.stages.Lowered.as_text."""
        return str(self.graph)

    def compile(self) -> Compiled:
        """The program, as a function of the arrays that the graph has as parameters: those of the arguments, in order.

        It returns an Array, or a tuple of several.  Source: jax.stages.Lowered.compile.
        """
        compiled = pipeline.make_program(self.graph, self.backend, self.hot, self.donated)
        return Compiled(partial(_run, self, compiled), compiled.program.text)

    def __str__(self) -> str:
        return str(self.graph)

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        """As its graph without source lines, the name of its backend, and the values that it closes over."""
        captured = tuple(wrap(node) for node in self.captured)
        return _unpickle, (self.graph, self.backend.device().name, captured, self.hot, self.donated)


def _unpickle(
    graph: Graph, backend: str, captured: tuple[Handle, ...], hot: bool, donated: tuple[int, ...] = ()
) -> Lowered:
    return Lowered(graph, backends.get(backend), tuple(array._node for array in captured), hot, donated)


def _run(lowered: Lowered, compiled: programs.CompiledGraph, *arguments: Any) -> Any:
    """The results of a program for these arrays; InputError for others than it was made for."""
    arrays = [as_array(argument) for argument in arguments]
    captured = [wrap(node) for node in lowered.captured]
    graph, got = lowered.graph, [array._node.type for array in arrays]
    wanted = graph.parameter_types[: len(graph.parameters) - len(captured)]
    if tuple(got) != wanted:
        raise InputError(
            f"{graph.name} was compiled for ({', '.join(each.short() for each in wanted)}), "
            f"got ({', '.join(each.short() for each in got)})"
        )
    evaluate(*arrays, *captured)
    device = lowered.backend.device()
    buffers = [buffer_of(array._node, device) for array in (*arrays, *captured)]
    values = execute(compiled, buffers)
    nodes = results_of(compiled, graph.result_types, range(len(graph.results)), values, device)
    if unread:
        attach(nodes, flags_of(array._node for array in (*arrays, *captured)))
    results = tuple([wrap(node) for node in nodes])
    return results[0] if len(results) == 1 else results


def lower(function: Callable[..., Any], *arguments: Any) -> Lowered:
    """Trace `function` on arguments: arrays, whose values are not looked at, or shapes such as "f32[2,3]".

    Python numbers are no parameters of the graph but literals in it: they give way to the element types
    of arrays, as they do outside.
    The function returns an Array or a tuple or list of Arrays.  Raises InputError for anything else.
    """
    if not callable(function):
        raise InputError(f"lower wants a function, got {type(function).__name__}")
    check_arity("lower", "the function", function, len(arguments))
    numbers = {index: value for index, value in enumerate(arguments) if is_weak(value)}
    types = [argument_type(value) for index, value in enumerate(arguments) if index not in numbers]
    device = (common_device(arguments) or backends.default_device()).committed

    def body(*parameters: Any) -> tuple[Handle, ...]:
        arrays = iter(parameters)
        both = [numbers[index] if index in numbers else next(arrays) for index in range(len(arguments))]
        return _results(function(*both))

    graph, captured = trace(body, types, device, getattr(function, "__name__", "main"), effects=True)
    return Lowered(graph, device.backend, captured)


def argument_type(argument: Any) -> Type:
    """The type of a parameter that stands for `argument`."""
    if isinstance(argument, str):
        argument = Shape.parse(argument)
    if isinstance(argument, ShapeDtypeStruct):
        return TensorType(argument.shape, argument.dtype)
    if isinstance(argument, Shape):
        return TensorType(tuple(argument.dimensions), argument.dtype, tuple(argument.dynamic_dimensions))
    return as_array(argument)._node.type


def _results(value: Any) -> tuple[Handle, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(v, Handle | int | float | complex) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise InputError(f"a traced function returns an Array or a tuple or list of Arrays, got {kinds}")
    return tuple(as_array(v) for v in values)
