"""`make_explicit`: the same program as runnable Python in which every broadcast is spelled out.

The function is traced and its graph written in `xarr.lax`, one line per node.  Since no node of a graph
relies on implicit broadcasting, neither does the text: it runs under `config.broadcasting = "explicit"`
and gives the same bits.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from keyword import iskeyword
from typing import Any, Final

import numpy as np

from xarr import backend as backends, lax
from xarr.base.configuration import current as config
from xarr.base.frozen_dataclasses import record
from xarr.base.host_arrays import is_weak
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT
from xarr.errors import InputError, pluralize
from xarr.explainers import explicit_collectives
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.systems import Composite
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType, TupleType
from xarr.lax.core import ArrayLike
from xarr.runtime.handles import Handle, wrap
from xarr.transforms.lowering import lower


@record
class ExplicitProgram:
    """A function rewritten without implicit broadcasts.

    `print(p)` or `p.text` shows it; `p(*arguments)` runs exactly that text.  Values from outside that
    the function used are its last parameters, `captured_0` …, and are passed by the call.  A Python number
    among the arguments is written into the text; the call refuses another one.
    """

    text: str
    name: str
    constants: dict[str, np.ndarray[Any, Any]]
    captured: tuple[Handle, ...] = ()
    backend: str = "numpy"
    numbers: tuple[Any, ...] = ()

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function that the text defines."""
        scope: dict[str, Any] = {"lax": lax, "np": np, **self.constants}
        exec(compile(self.text, "<explicit program>", "exec"), scope)
        return scope[self.name]  # type: ignore[no-any-return]

    def __call__(self, *arguments: ArrayLike) -> Any:
        if len(arguments) != len(self.numbers):
            raise InputError(
                f"{self.name} takes {pluralize(len(self.numbers), 'argument')}, got {len(arguments)}"
            )
        for wanted, argument in zip(self.numbers, arguments, strict=True):
            if wanted is not None and (type(argument) is not type(wanted) or repr(argument) != repr(wanted)):
                raise InputError(
                    f"{self.name} was made for the number {wanted!r}, got {argument!r}; call make_explicit again for it"
                )
        arrays = [
            argument for wanted, argument in zip(self.numbers, arguments, strict=True) if wanted is None
        ]
        with backends.use_backend(self.backend):
            return self.function(*arrays, *self.captured)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@record
class ExplicitFunction:
    """`make_explicit(f)` of a function that takes arguments: call it with them to get its program."""

    original: Callable[..., Any]

    def __call__(self, *arguments: ArrayLike) -> ExplicitProgram:
        return _program(self.original, arguments)

    def __repr__(self) -> str:
        name = getattr(self.original, "__name__", "the function")
        return f"<explicit program of {name}, made for the arguments of a call>"


def make_explicit(function: Callable[..., Any], *arguments: Any) -> ExplicitProgram | ExplicitFunction:
    """`function` as an ExplicitProgram for arguments of these shapes: arrays, or text like "f32[2,3]".

    Without arguments, a function that needs some gives an ExplicitFunction, which makes the program
    when it is called with them.  Raises InputError for what does not return Arrays.
    """
    if not callable(function):
        raise InputError(f"make_explicit wants a function, got {type(function).__name__}")
    if not arguments and _parameter_names(function):
        return ExplicitFunction(function)
    return _program(function, arguments)


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [str.__str__(p.name) for p in parameters if p.kind in kinds and p.default is p.empty]


def _program(function: Callable[..., Any], arguments: Sequence[Any]) -> ExplicitProgram:
    with config(broadcasting="numpy"):  # what it is to spell out may be what the caller refuses
        lowered = lower(function, *arguments)
    numbers = tuple(argument if is_weak(argument) else None for argument in arguments)
    written = _parameter_names(function)[: len(arguments)]
    written = [name if _is_name(name) else f"x{i}" for i, name in enumerate(written)]
    written += [f"x{i}" for i in range(len(written), len(arguments))]
    names: list[str] = []
    for number, name in zip(numbers, written, strict=True):
        if number is None:
            names.append(_safe(name, names))
    names += [f"captured_{i}" for i in range(len(lowered.captured))]
    called = getattr(function, "__name__", "")
    name = _safe(called, names) if type(called) is str and _is_name(called) else "program"
    writer = _ProgramWriter()
    graph = rewritten_throughout(lowered.graph, _definition)
    lines = writer.define(name, graph, names)
    captured = tuple(wrap(node) for node in lowered.captured)
    text = "\n".join(lines) + "\n"
    return ExplicitProgram(text, name, writer.constants, captured, lowered.backend.name, numbers)


def _definition(node: Node, operands: tuple[Node, ...]) -> Node | None:
    """The definition of an op that no function of `xarr.lax` is alone."""
    if isinstance(node.op, Composite) and node.op.is_internal:
        return node.op.definition(*operands)
    return None


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def _safe(name: str, others: Sequence[str]) -> str:
    """A name, changed as long as the program uses it for something else."""
    while name in ("lax", "np", *others) or _USED.fullmatch(name):
        name += "_"
    return name


_USED: Final = re.compile(r"[vf]\d+|f\d+_\d+|(captured|constant)_\d+")


@dataclass
class _ProgramWriter:
    """Writes graphs as Python functions; large literals become names in `constants`."""

    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    _functions: int = 0

    def define(self, name: str, graph: Graph, parameters: Sequence[str]) -> list[str]:
        """The lines of `def name(parameters)` for a graph."""
        names: dict[Node, str] = dict(zip(graph.parameters, parameters, strict=True))
        body: list[str] = []
        for node in graph.nodes:
            inner = [self._inner(carried, body) for carried in node.op.graphs]
            operands = [names[operand] for operand in node.operands]
            names[node] = f"v{len(names)}"
            body.append(f"{names[node]} = {self._expression(node, operands, inner)}")
        results = ", ".join(names[node] for node in graph.results)
        body.append(f"return {results}" if results else "return ()")
        return [f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in body)]

    def _inner(self, graph: Graph, body: list[str]) -> str:
        """Define a carried graph inside the function being written; returns its name."""
        self._functions += 1
        name = f"f{self._functions}"
        parameters = [f"{name}_{i}" for i in range(len(graph.parameters))]
        body.extend(self.define(name, graph, parameters))
        return name

    def _expression(self, node: Node, operands: list[str], inner: list[str]) -> str:
        op = node.op
        if isinstance(op, ops.Constant):
            return self._literal(op.array)
        if not is_spelled(type(op)):
            raise InputError(f"make_explicit cannot write {op.name}")
        special = _SPELLINGS.get(type(op))
        if special is not None:
            return special(op, node, operands, inner)
        return f"lax.{op.lax_name}({', '.join(operands)})"

    def _literal(self, array: np.ndarray[Any, Any]) -> str:
        dtype = str(array.dtype)
        plain = array.dtype not in EXTENDED_FLOAT | COMPLEX and bool(np.isfinite(array).all())
        if not array.shape and plain:
            return f"lax.full((), {array.item()!r}, {dtype!r})"
        if not array.shape and array.dtype.kind == "f":
            spelled = str(float(array))
            if np.array(float(spelled), array.dtype).tobytes() == array.tobytes():
                return f"lax.full((), float({spelled!r}), {dtype!r})"
        if array.size <= 16 and plain and array.size:
            return f"np.array({array.tolist()}, {dtype!r})"
        name = f"constant_{len(self.constants)}"
        self.constants[name] = array
        return name


Spelling = Callable[[Any, Node, list[str], list[str]], str]


def _variadic(operands: list[str]) -> str:
    return operands[0] if len(operands) == 1 else f"({', '.join(operands)})"


def _dot_general(op: ops.DotGeneral, node: Node, operands: list[str], inner: list[str]) -> str:
    contracting = (op.lhs_contracting_dimensions, op.rhs_contracting_dimensions)
    batching = (op.lhs_batching_dimensions, op.rhs_batching_dimensions)
    return (
        f"lax.dot_general({operands[0]}, {operands[1]}, ({contracting}, {batching}), "
        f"preferred_element_type={str(op.dtype)!r})"
    )


def _convolution(op: ops.Convolution, node: Node, operands: list[str], inner: list[str]) -> str:
    numbers = f"lax.ConvDimensionNumbers({op.lhs_spec}, {op.rhs_spec}, {op.out_spec})"
    return (
        f"lax.conv_general_dilated({operands[0]}, {operands[1]}, {op.window_strides}, {op.padding}, "
        f"{op.lhs_dilation}, {op.rhs_dilation}, {numbers}, {op.feature_group_count}, {op.batch_group_count}, "
        f"preferred_element_type={str(op.dtype)!r}, window_reversal={op.window_reversal})"
    )


def _reduce(op: ops.Reduce, node: Node, operands: list[str], inner: list[str]) -> str:
    half = len(operands) // 2
    arrays, initial = _variadic(operands[:half]), _variadic(operands[half:])
    combiner = inner[0] if half == 1 else f"lambda a, b: {inner[0]}(*a, *b)"
    return f"lax.reduce({arrays}, {initial}, {combiner}, {op.dimensions})"


def _gather(op: ops.Gather, node: Node, operands: list[str], inner: list[str]) -> str:
    numbers = (
        f"lax.GatherDimensionNumbers({op.offset_dims}, {op.collapsed_slice_dims}, {op.start_index_map}, "
        f"{op.operand_batching_dims}, {op.start_indices_batching_dims})"
    )
    return (
        f"lax.gather({operands[0]}, {operands[1]}, {numbers}, {op.slice_sizes}, "
        f"indices_are_sorted={op.indices_are_sorted}, index_vector_dim={op.index_vector_dim})"
    )


def _scatter(op: ops.Scatter, node: Node, operands: list[str], inner: list[str]) -> str:
    count = len(operands) // 2
    numbers = (
        f"lax.ScatterDimensionNumbers({op.update_window_dims}, {op.inserted_window_dims}, "
        f"{op.scatter_dims_to_operand_dims}, {op.input_batching_dims}, {op.scatter_indices_batching_dims})"
    )
    return (
        f"lax.scatter_with({_variadic(operands[:count])}, {operands[count]}, "
        f"{_variadic(operands[count + 1 :])}, {_on_pairs(inner[0], count)}, {numbers}, "
        f"indices_are_sorted={op.indices_are_sorted}, unique_indices={op.unique_indices}, "
        f"index_vector_dim={op.index_vector_dim})"
    )


def _reduce_window(op: ops.ReduceWindow, node: Node, operands: list[str], inner: list[str]) -> str:
    half = len(operands) // 2
    arrays, initial = _variadic(operands[:half]), _variadic(operands[half:])
    return (
        f"lax.reduce_window({arrays}, {initial}, {_on_pairs(inner[0], half)}, {op.window_dimensions}, "
        f"{op.window_strides}, {op.padding}, {op.base_dilations}, {op.window_dilations})"
    )


def _select_and_scatter(op: ops.SelectAndScatter, node: Node, operands: list[str], inner: list[str]) -> str:
    return (
        f"lax.select_and_scatter({operands[0]}, {inner[0]}, {op.window_dimensions}, {op.window_strides}, "
        f"{op.padding}, {operands[1]}, {operands[2]}, {inner[1]})"
    )


def _on_pairs(name: str, count: int) -> str:
    """A function of 2N arguments as one of two tuples of N."""
    return name if count == 1 else f"lambda first, second: {name}(*first, *second)"


def _dynamic_slice(op: ops.DynamicSlice, node: Node, operands: list[str], inner: list[str]) -> str:
    starts = f"({''.join(f'{name}, ' for name in operands[1:])})"
    return f"lax.dynamic_slice({operands[0]}, {starts}, {op.slice_sizes}, allow_negative_indices=False)"


def _dynamic_update_slice(
    op: ops.DynamicUpdateSlice, node: Node, operands: list[str], inner: list[str]
) -> str:
    starts = f"({''.join(f'{name}, ' for name in operands[2:])})"
    return f"lax.dynamic_update_slice({operands[0]}, {operands[1]}, {starts}, allow_negative_indices=False)"


def _pad(op: ops.Pad, node: Node, operands: list[str], inner: list[str]) -> str:
    config = list(zip(op.low, op.high, op.interior, strict=True))
    return f"lax.pad({operands[0]}, {operands[1]}, {config})"


def _get(op: ops.GetTupleElement, node: Node, operands: list[str], inner: list[str]) -> str:
    if isinstance(node.operands[0].op, ops.Tuple) or not node.operands[0].operands:
        return f"lax.get_tuple_element({operands[0]}, {op.index})"
    return f"{operands[0]}[{op.index}]"


def _while(op: ops.While, node: Node, operands: list[str], inner: list[str]) -> str:
    shown = "" if op.progress is None else f", progress={op.progress.label!r}"
    if not isinstance(node.type, TupleType):
        return f"lax.while_loop({inner[0]}, {inner[1]}, {operands[0]}{shown})"
    cond, body = (f"lambda carry: {name}(*carry)" for name in inner)
    return f"lax.while_loop({cond}, {body}, ({', '.join(operands)}){shown})"


def _custom_call(op: ops.CustomCall, node: Node, operands: list[str], inner: list[str]) -> str:
    if op.function is not None:
        raise InputError(
            "make_explicit cannot write the functions that debug.print, debug.callback and pure_callback call; call "
            "them outside of the function"
        )
    declared = [(type.shape, str(type.dtype)) for type in op.result_types if isinstance(type, TensorType)]
    types: Any = declared[0] if len(declared) == 1 else declared
    arguments = [repr(op.call_target_name), *operands, f"result_types={types}"]
    if op.attribute_items:
        arguments.append(f"attributes={dict(op.attribute_items)}")
    if op.has_side_effect:
        arguments.append("has_side_effect=True")
    return f"lax.custom_call({', '.join(arguments)})"


def _batch_norm(op: Any, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.{op.lax_name}({', '.join(operands)}, {op.epsilon!r}, {op.feature_index})"


def _round(method: str) -> Spelling:
    return lambda op, node, operands, inner: f"lax.round({operands[0]}, lax.RoundingMethod.{method})"


_SPELLINGS: Final[dict[type[Op], Spelling]] = {
    **explicit_collectives.SPELLINGS,
    ops.RoundNearestAfz: _round("AWAY_FROM_ZERO"),
    ops.RoundNearestEven: _round("TO_NEAREST_EVEN"),
    ops.Iota: lambda op, node, x, f: (
        f"lax.broadcasted_iota({str(node.dtype)!r}, {node.shape}, {op.dimension})"
    ),
    ops.Select: lambda op, node, x, f: f"lax.select({x[0]}, {x[1]}, {x[2]})",
    ops.Clamp: lambda op, node, x, f: f"lax.clamp({x[0]}, {x[1]}, {x[2]})",
    ops.Convert: lambda op, node, x, f: f"lax.convert_element_type({x[0]}, {str(op.dtype)!r})",
    ops.BitcastConvert: lambda op, node, x, f: f"lax.bitcast_convert_type({x[0]}, {str(op.dtype)!r})",
    ops.ReducePrecision: lambda op, node, x, f: (
        f"lax.reduce_precision({x[0]}, {op.exponent_bits}, {op.mantissa_bits})"
    ),
    ops.BroadcastInDim: lambda op, node, x, f: (
        f"lax.broadcast_in_dim({x[0]}, {op.shape}, {op.broadcast_dimensions})"
    ),
    ops.Reshape: lambda op, node, x, f: f"lax.reshape({x[0]}, {op.shape})",
    ops.Transpose: lambda op, node, x, f: f"lax.transpose({x[0]}, {op.permutation})",
    ops.Reverse: lambda op, node, x, f: f"lax.rev({x[0]}, {op.dimensions})",
    ops.Slice: lambda op, node, x, f: (
        f"lax.slice({x[0]}, {op.start_indices}, {op.limit_indices}, {op.strides})"
    ),
    ops.Pad: _pad,
    ops.Concatenate: lambda op, node, x, f: f"lax.concatenate([{', '.join(x)}], {op.dimension})",
    ops.DotGeneral: _dot_general,
    ops.Convolution: _convolution,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
    ops.ReduceWindow: _reduce_window,
    ops.SelectAndScatter: _select_and_scatter,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update_slice,
    ops.Reduce: _reduce,
    ops.Sort: lambda op, node, x, f: (
        f"lax.sort_with({_variadic(x)}, {f[0]}, dimension={op.dimension}, is_stable={op.is_stable})"
    ),
    ops.Tuple: lambda op, node, x, f: f"lax.tuple({', '.join(x)})",
    ops.GetTupleElement: _get,
    ops.OptimizationBarrier: lambda op, node, x, f: f"lax.optimization_barrier({_variadic(x)})",
    ops.Call: lambda op, node, x, f: f"lax.call({', '.join([f[0], *x])})",
    ops.Map: lambda op, node, x, f: f"lax.map_elements({', '.join([f[0], *x])})",
    ops.While: _while,
    ops.Cholesky: lambda op, node, x, f: f"lax.linalg.cholesky_of_triangle({x[0]}, lower={op.lower})",
    ops.TriangularSolve: lambda op, node, x, f: (
        f"lax.linalg.triangular_solve({x[0]}, {x[1]}, left_side={op.left_side}, lower={op.lower}, "
        f"transpose_a={op.transpose_a != 'NO_TRANSPOSE'}, conjugate_a={op.transpose_a == 'ADJOINT'}, "
        f"unit_diagonal={op.unit_diagonal})"
    ),
    ops.Check: lambda op, node, x, f: f"lax.linalg.check({x[0]}, {x[1]}, {op.message!r}, {op.raises!r})",
    ops.Eig: lambda op, node, x, f: f"lax.linalg.geev({x[0]}, {op.compute_left}, {op.compute_right})",
    ops.Eigh: lambda op, node, x, f: f"lax.linalg.syevd({x[0]}, {op.lower}, {op.compute_v})",
    ops.Geqrf: lambda op, node, x, f: f"lax.linalg.geqrf({x[0]})",
    ops.HouseholderProduct: lambda op, node, x, f: f"lax.linalg.householder_product({x[0]}, {x[1]})",
    ops.LogDeterminant: lambda op, node, x, f: f"lax.linalg.slogdet({x[0]})",
    ops.Lu: lambda op, node, x, f: f"lax.linalg.getrf({x[0]})",
    ops.Solve: lambda op, node, x, f: f"lax.linalg.solve({x[0]}, {x[1]})",
    ops.Svd: lambda op, node, x, f: f"lax.linalg.gesdd({x[0]}, {op.full_matrices}, {op.compute_uv})",
    ops.Fft: lambda op, node, x, f: f"lax.fft({x[0]}, {op.fft_type!r}, {op.fft_length})",
    ops.BatchNormTraining: _batch_norm,
    ops.BatchNormInference: _batch_norm,
    ops.BatchNormGrad: _batch_norm,
    ops.RngBitGenerator: lambda op, node, x, f: (
        f"lax.rng_bit_generator({x[0]}, {op.result.shape}, {str(op.result.dtype)!r}, {op.algorithm!r})"
    ),
    ops.Rng: lambda op, node, x, f: f"lax.rng_{op.distribution.lower()}({x[0]}, {x[1]}, {op.shape})",
    ops.CustomCall: _custom_call,
    ops.GetDimensionSize: lambda op, node, x, f: f"lax.get_dimension_size({x[0]}, {op.dimension})",
    ops.SetDimensionSize: lambda op, node, x, f: f"lax.set_dimension_size({x[0]}, {x[1]}, {op.dimension})",
    ops.If: lambda op, node, x, f: f"lax.cond({', '.join([x[0], f[0], f[1], *x[1:]])})",
    ops.Case: lambda op, node, x, f: f"lax.switch({', '.join([x[0], '[' + ', '.join(f) + ']', *x[1:]])})",
}


def is_spelled(op: type[Op]) -> bool:
    """Whether programs with this op can be written out."""
    return op in _SPELLINGS or issubclass(op, ops.Elementwise | ops.Constant)
