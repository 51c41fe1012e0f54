"""The meaning of each mnemonic: a table from names to the functions that build their nodes.

To add an operation, add one row.  An element-wise op without attributes needs none: it is looked up by its class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.base.custom_calls import is_registered
from xarr.dtypes import COMPLEX
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.computations import descending
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.formula import Term, is_finite, where
from xarr.ir.ops.normalisation import BatchNorm
from xarr.ir.stablehlo.composites import composite
from xarr.ir.stablehlo.distributed import collectives
from xarr.ir.stablehlo.distributed.manual_computation import manual_computation
from xarr.ir.stablehlo.dynamic import (
    dynamic_broadcast_in_dim,
    dynamic_iota,
    dynamic_pad,
    dynamic_reduce_window,
    dynamic_reshape,
    get_dimension_size,
    real_dynamic_slice,
    set_dimension_size,
    shape_assertion,
    static_sizes,
)
from xarr.ir.stablehlo.lapack import LAPACK_CALLS
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.stablehlo.syntax_tree import ParsedOperation

#: What a builder gives: the node of an op, or the results one by one where they are several nodes.
Built: TypeAlias = Node | tuple[Node, ...]

#: Longer splats become a broadcast scalar, so that a short text cannot fill the memory.
_LONGEST_SPLAT: Final = 2**16


def _regular(op: Op, arity: int) -> Callable[[Site], Built]:
    return lambda site: Node(op, site.take(arity))


def _elementwise() -> dict[str, Callable[[Site], Built]]:
    classes = [
        each for each in vars(ops).values() if isinstance(each, type) and issubclass(each, ops.Elementwise)
    ]
    named = [each for each in classes if hasattr(each, "name") and not fields(each)]
    return {each.name: _regular(each(), each.arity) for each in named}


def _square(site: Site) -> Built:
    """x², the parts of a complex one as (a - b) (a + b) and 2 a b, and 0 for the first where |a| = |b|."""
    (x,) = site.take(1)
    if x.tensor_type.dtype not in COMPLEX:
        return Node(ops.Multiply(), (x, x))
    a, b = Term(Node(ops.Real(), (x,))), Term(Node(ops.Imag(), (x,)))
    is_diagonal = abs(a).eq(abs(b)) & is_finite(a)
    parts = where(is_diagonal, a - a, (a - b) * (a + b)), a * b + a * b
    return Node(ops.Complex(), tuple(part.node for part in parts))


# --- creation and movement --------------------------------------------------------------------------


def _constant(site: Site) -> Built:
    site.take(0)
    type = site.type()
    elements = site.elements("value", site.attribute("value"), type)
    if elements.type is not type:
        site.fail(f"the elements are {elements.type}, the result is {type}")
    if elements.is_splat and type.size > _LONGEST_SPLAT:
        scalar = Node(ops.Constant(type.with_shape(()), elements.raw))
        return Node(ops.BroadcastInDim(type.shape, ()), (scalar,))
    return Node(ops.Constant(type, elements.all()))


def _iota(site: Site) -> Built:
    site.take(0)
    return Node(ops.Iota(site.type(), site.integer("iota_dimension")))


def _broadcast_in_dim(site: Site) -> Built:
    (operand,) = site.take(1)
    return broadcast(operand, site.type().shape, site.integers("broadcast_dimensions"))


def broadcast(operand: Node, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> Node:
    """BroadcastInDim with dimensions in any order, which takes a transpose before."""
    if len(dimensions) == operand.tensor_type.rank and len(set(dimensions)) == len(dimensions):
        order = tuple(sorted(range(len(dimensions)), key=dimensions.__getitem__))
        if order != tuple(range(len(order))):
            operand, dimensions = Node(ops.Transpose(order), (operand,)), tuple(sorted(dimensions))
    return Node(ops.BroadcastInDim(shape, dimensions), (operand,))


def _broadcast(site: Site) -> Built:
    (operand,) = site.take(1)
    sizes = site.integers("broadcast_sizes")
    kept = operand.tensor_type
    return Node(
        ops.BroadcastInDim(sizes + kept.shape, tuple(range(len(sizes), len(sizes) + kept.rank))), (operand,)
    )


def _pad(site: Site) -> Built:
    low, high = site.integers("edge_padding_low"), site.integers("edge_padding_high")
    return Node(ops.Pad(low, high, site.integers("interior_padding")), site.take(2))


def _slice(site: Site) -> Built:
    rows = [site.integers(name) for name in ("start_indices", "limit_indices", "strides")]
    return Node(ops.Slice(*rows), site.take(1))


# --- element-wise, with attributes ------------------------------------------------------------------


def _compare(site: Site) -> Built:
    order = site.word("compare_type", "NOTYPE")
    return Node(ops.Compare(site.word("comparison_direction"), order == "TOTALORDER"), site.take(2))


def _select(site: Site) -> Built:
    return Node(ops.Select(), _spread(site, (0,), 1))


def _clamp(site: Site) -> Built:
    return Node(ops.Clamp(), _spread(site, (0, 2), 1))


def _spread(site: Site, positions: tuple[int, ...], like: int) -> tuple[Node, ...]:
    """Three operands, the scalars at `positions` broadcast to the shape of another: StableHLO allows them."""
    operands = list(site.take(3))
    shape = operands[like].shape
    for position in positions:
        if not operands[position].shape and shape:
            operands[position] = Node(ops.BroadcastInDim(shape, ()), (operands[position],))
    return tuple(operands)


def _reduce_precision(site: Site) -> Built:
    return Node(
        ops.ReducePrecision(site.integer("exponent_bits"), site.integer("mantissa_bits")), site.take(1)
    )


# --- windows at positions known late ----------------------------------------------------------------


def _gather(site: Site) -> Built:
    return Node(_gather_op(site, site.integers("slice_sizes")), site.take(2))


def _dynamic_gather(site: Site) -> Built:
    operand, indices, sizes = site.take(3)
    return Node(_gather_op(site, static_sizes(site, sizes)), (operand, indices))


def _gather_op(site: Site, slice_sizes: tuple[int, ...]) -> Op:
    numbers = site.record("dimension_numbers")
    return ops.Gather(
        offset_dims=site.field(numbers, "offset_dims"),
        collapsed_slice_dims=site.field(numbers, "collapsed_slice_dims"),
        operand_batching_dims=site.field(numbers, "operand_batching_dims"),
        start_indices_batching_dims=site.field(numbers, "start_indices_batching_dims"),
        start_index_map=site.field(numbers, "start_index_map"),
        index_vector_dim=site.as_integer("index_vector_dim", numbers.get("index_vector_dim", 0)),
        slice_sizes=slice_sizes,
        indices_are_sorted=site.flag("indices_are_sorted"),
    )


def _scatter(site: Site) -> Built:
    numbers = site.record("scatter_dimension_numbers")
    op = ops.Scatter(
        update_window_dims=site.field(numbers, "update_window_dims"),
        inserted_window_dims=site.field(numbers, "inserted_window_dims"),
        input_batching_dims=site.field(numbers, "input_batching_dims"),
        scatter_indices_batching_dims=site.field(numbers, "scatter_indices_batching_dims"),
        scatter_dims_to_operand_dims=site.field(numbers, "scatter_dims_to_operand_dims"),
        index_vector_dim=site.as_integer("index_vector_dim", numbers.get("index_vector_dim", 0)),
        update_computation=site.computation(),
        indices_are_sorted=site.flag("indices_are_sorted"),
        unique_indices=site.flag("unique_indices"),
    )
    return Node(op, site.operands)


def _dynamic_slice(site: Site) -> Built:
    return Node(ops.DynamicSlice(site.integers("slice_sizes")), site.at_least(1))


# --- windows that slide -----------------------------------------------------------------------------


def _reduce_window(site: Site) -> Built:
    sizes = site.integers("window_dimensions")
    ones = (1,) * len(sizes)
    op = ops.ReduceWindow(
        sizes,
        site.integers("window_strides", ones),
        site.integers("base_dilations", ones),
        site.integers("window_dilations", ones),
        site.pairs("padding", [(0, 0)] * len(sizes)),
        site.computation(),
    )
    return Node(op, site.operands)


def _select_and_scatter(site: Site) -> Built:
    # The dialect lets window dimensions be absent where there are none.
    sizes = site.integers("window_dimensions", ())
    strides = site.integers("window_strides", (1,) * len(sizes))
    padding = site.pairs("padding", [(0, 0)] * len(sizes))
    op = ops.SelectAndScatter(sizes, strides, padding, site.computation(), site.computation(1))
    return Node(op, site.operands)


def _convolution(site: Site) -> Built:
    operands = site.take(2)
    return _convolve(site, operands, site.pairs("padding", [(0, 0)] * (operands[0].tensor_type.rank - 2)))


def _dynamic_conv(site: Site) -> Built:
    *operands, padding = site.take(3)
    literal = site.value(padding)
    if literal.ndim != 2 or literal.shape[1] != 2:
        site.fail(f"expected a padding of shape [N, 2], got {list(literal.shape)}")
    return _convolve(site, operands, [(low, high) for low, high in literal.tolist()])


def _convolve(site: Site, operands: Sequence[Node], padding: Sequence[tuple[int, int]]) -> Built:
    numbers = site.record("dimension_numbers")
    lhs_spec, rhs_spec, out_spec = (
        _spec(site, numbers, array, *names)
        for array, *names in (
            ("input", "batch", "feature"),
            ("kernel", "output_feature", "input_feature"),
            ("output", "batch", "feature"),
        )
    )
    ones = (1,) * (len(rhs_spec) - 2)
    op = ops.Convolution(
        lhs_spec=lhs_spec,
        rhs_spec=rhs_spec,
        out_spec=out_spec,
        window_strides=site.integers("window_strides", ones),
        padding=tuple(padding),
        lhs_dilation=site.integers("lhs_dilation", ones),
        rhs_dilation=site.integers("rhs_dilation", ones),
        window_reversal=site.flags("window_reversal", [False for _ in ones]),
        feature_group_count=site.integer("feature_group_count"),
        batch_group_count=site.integer("batch_group_count"),
        dtype=site.dtype,
        precision=_precision(site),
    )
    return Node(op, tuple(operands))


def _spec(site: Site, numbers: dict[str, Any], array: str, first: str, second: str) -> tuple[int, ...]:
    names = [f"{array}_{name}_dimension" for name in (first, second)]
    fixed = [site.as_integer(name, numbers.get(name)) for name in names]
    return (*fixed, *site.field(numbers, f"{array}_spatial_dimensions"))


# --- whole dimensions -------------------------------------------------------------------------------


def _reduce(site: Site) -> Built:
    return Node(ops.Reduce(site.integers("dimensions"), site.computation()), site.operands)


def _sort(site: Site) -> Built:
    operands = site.operands
    rank = operands[0].tensor_type.rank if operands else 0
    dimension = site.integer("dimension", -1)
    counted = dimension + rank if dimension < 0 else dimension
    return Node(ops.Sort(counted, site.flag("is_stable"), site.computation()), operands)


def _dot_general(site: Site) -> Built:
    numbers = site.record("dot_dimension_numbers")
    names = [f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs")]
    batch, other_batch, contracted, other_contracted = (site.field(numbers, name) for name in names)
    op = ops.DotGeneral(batch, other_batch, contracted, other_contracted, site.dtype, _precision(site))
    return Node(op, site.take(2))


def _precision(site: Site) -> tuple[str, str]:
    words = site.words("precision_config", ("DEFAULT", "DEFAULT"))
    if len(words) != 2:
        site.fail(f"expected a precision for each side, got {words}")
    return words[0], words[1]


def _dot(site: Site) -> Built:
    lhs, _ = site.take(2)
    contracting = (lhs.tensor_type.rank - 1,)
    return Node(ops.DotGeneral((), (), contracting, (0,), site.dtype, _precision(site)), site.operands)


def _top_k(site: Site) -> Built:
    (operand,) = site.take(1)
    return _largest(operand, site.integer("k"))


def _dynamic_top_k(site: Site) -> Built:
    operand, k = site.take(2)
    return _largest(operand, int(site.value(k)))


def _largest(operand: Node, k: int) -> Built:
    """The k largest along the last dimension and where they stand; of equals the first comes first."""
    type = operand.tensor_type
    if not type.rank or not 0 <= k <= type.shape[-1]:
        raise ShapeError(f"top_k: wanted 0 <= k <= the last size of {type.short()}, got {k}")
    last = type.rank - 1
    indices = Node(ops.Iota(type.with_dtype(np.dtype(np.int32)), last))
    ordered = Node(ops.Sort(last, True, descending(type.dtype, np.dtype(np.int32))), (operand, indices))
    cut = ops.Slice((0,) * type.rank, (*type.shape[:-1], k), (1,) * type.rank)
    return tuple([Node(cut, (each,)) for each in unpack_results(ordered)])


# --- computations, tuples ---------------------------------------------------------------------------


def _map(site: Site) -> Built:
    return Node(ops.Map(site.integers("dimensions"), site.computation()), site.operands)


def _while(site: Site) -> Built:
    (cond, body), captured = site.loop()
    extra = body.parameters[len(body.parameters) - len(captured) :]
    loop = body.derive({}, (*body.results, *extra), name="body")
    return Node(ops.While(cond.with_name("cond"), loop, _progress(site)), (*site.operands, *captured))


def _progress(site: Site) -> ops.Progress | None:
    """The bar that a loop printed by us shows."""
    record = site.operation.attributes.get("mhlo.frontend_attributes")
    label = record.get(f"{ops.Progress.prefix}.progress") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(label, str):
        return None
    numbers = str(record.get(f"{ops.Progress.prefix}.counter", "")).split()
    count = len(site.operands)
    if len(numbers) == 2 and all(number.isdecimal() and int(number) < count for number in numbers):
        return ops.Progress(label, (int(numbers[0]), int(numbers[1])))
    return ops.Progress(label)


def _if(site: Site) -> Built:
    (on_true, on_false), captured = site.capturing(0, 1)
    return Node(ops.If(on_true, on_false), (*site.take(1), *captured))


def _case(site: Site) -> Built:
    branches, captured = site.capturing(*range(len(site.operation.regions)))
    return Node(ops.Case(tuple(branches)), (*site.take(1), *captured))


def _get_tuple_element(site: Site) -> Built:
    return Node(ops.GetTupleElement(site.integer("index")), site.take(1))


def _custom_call(site: Site) -> Built:
    target = site.word("call_target_name")
    return CUSTOM_CALLS[target](site) if target in CUSTOM_CALLS else _registered_call(site, target)


def _registered_call(site: Site, target: str) -> Built:
    """A call of a function that the user registered."""
    config = site.operation.attributes.get("backend_config", {})
    items = config if isinstance(config, dict) else {"backend_config": config}
    for name, value in items.items():
        if not isinstance(value, bool | int | float | str):
            site.fail(f"expected a bool, a number or a string for {name} of @{target}, got {value!r}")
    types = tuple(site.type(index) for index in range(len(site.operation.result_types)))
    attributes = tuple(sorted(items.items()))
    return Node(ops.CustomCall(target, types, attributes, site.flag("has_side_effect")), site.operands)


def _rng(site: Site) -> Built:
    operands = site.take(3)
    shape = tuple(int(size) for size in site.value(operands[2]))
    return Node(ops.Rng(site.word("rng_distribution"), shape), operands)


def _rng_bit_generator(site: Site) -> Built:
    return Node(ops.RngBitGenerator(site.word("rng_algorithm"), site.type(1)), site.take(1))


# --- linear algebra, transforms, normalisation -------------------------------------------------------


def _triangular_solve(site: Site) -> Built:
    op = ops.TriangularSolve(
        site.flag("left_side"),
        site.flag("lower"),
        site.flag("unit_diagonal"),
        site.word("transpose_a", "NO_TRANSPOSE"),
    )
    return Node(op, site.take(2))


def _batch_norm(op: type[BatchNorm], arity: int) -> Callable[[Site], Built]:
    def build(site: Site) -> Built:
        epsilon = site.attribute("epsilon")
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
            site.fail(f"expected a number for epsilon, got {epsilon!r}")
        made: Any = op
        node = Node(made(float(np.float32(epsilon)), site.integer("feature_index")), site.take(arity))
        return unpack_results(node)

    return build


def _sharding(site: Site) -> Built:
    """Says where values live; here they all live together."""
    return site.take(1)


Builders = dict[str, Callable[[Site], Built]]

BUILDERS: Final[Builders] = {
    **_elementwise(),
    **collectives.BUILDERS,
    "chlo.constant": _constant,
    "chlo.square": _square,
    "chlo.tan": _regular(ops.Tan(), 1),
    "chlo.top_k": _top_k,
    "func.call": lambda site: site.function("callee"),
    "sdy.manual_computation": manual_computation,
    "stablehlo.batch_norm_grad": _batch_norm(ops.BatchNormGrad, 5),
    "stablehlo.batch_norm_inference": _batch_norm(ops.BatchNormInference, 5),
    "stablehlo.batch_norm_training": _batch_norm(ops.BatchNormTraining, 3),
    "stablehlo.bitcast_convert": lambda site: Node(ops.BitcastConvert(site.dtype), site.take(1)),
    "stablehlo.broadcast": _broadcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.case": _case,
    "stablehlo.cholesky": lambda site: Node(ops.Cholesky(site.flag("lower")), site.take(1)),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.composite": composite,
    "stablehlo.concatenate": lambda site: Node(ops.Concatenate(site.integer("dimension")), site.operands),
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.convert": lambda site: Node(ops.Convert(site.dtype), site.take(1)),
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": dynamic_broadcast_in_dim,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_conv": _dynamic_conv,
    "stablehlo.dynamic_iota": dynamic_iota,
    "stablehlo.dynamic_pad": dynamic_pad,
    "stablehlo.dynamic_reshape": dynamic_reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": lambda site: Node(ops.DynamicUpdateSlice(), site.at_least(2)),
    "stablehlo.fft": lambda site: Node(
        ops.Fft(site.word("fft_type"), site.integers("fft_length")), site.take(1)
    ),
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": get_dimension_size,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.if": _if,
    "stablehlo.iota": _iota,
    "stablehlo.map": _map,
    "stablehlo.optimization_barrier": lambda site: Node(ops.OptimizationBarrier(), site.operands),
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": lambda site: Node(ops.Reshape(site.type().shape), site.take(1)),
    "stablehlo.reverse": lambda site: Node(ops.Reverse(site.integers("dimensions")), site.take(1)),
    "stablehlo.rng": _rng,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.scatter": _scatter,
    "stablehlo.select": _select,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.set_dimension_size": set_dimension_size,
    "stablehlo.slice": _slice,
    "stablehlo.sort": _sort,
    "stablehlo.transpose": lambda site: Node(ops.Transpose(site.integers("permutation")), site.take(1)),
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.tuple": lambda site: Node(ops.Tuple(), site.operands),
    "stablehlo.while": _while,
}

#: The functions that `stablehlo.custom_call` may name.
CUSTOM_CALLS: Final[Builders] = {
    **LAPACK_CALLS,
    "Sharding": _sharding,
    "shape_assertion": shape_assertion,
    "stablehlo.dynamic_reduce_window": dynamic_reduce_window,
    "stablehlo.dynamic_top_k": _dynamic_top_k,
}


def is_built(operation: ParsedOperation) -> bool:
    """Whether there is a row for an operation."""
    if operation.name == "stablehlo.custom_call":
        target = operation.attributes.get("call_target_name")
        return target in CUSTOM_CALLS or (isinstance(target, str) and is_registered(target))
    return operation.name in BUILDERS
