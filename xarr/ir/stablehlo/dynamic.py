"""Operations whose result sizes are operands, for modules in which those refine to constants."""

from __future__ import annotations

import numpy as np

from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Node
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.types import Ints, TensorType

_INT32 = np.dtype(np.int32)


def _shape(site: Site, operand: Node) -> Ints:
    """The result's shape: as it is written, or else the value of the operand that holds it."""
    declared = site.declared_type()
    return declared.shape if isinstance(declared, TensorType) else static_sizes(site, operand)


def static_sizes(site: Site, operand: Node) -> Ints:
    """The sizes that an operand holds, which must depend on shapes alone."""
    values = tuple(int(size) for size in site.value(operand).reshape(-1).tolist())
    if any(size < 0 for size in values):
        raise ShapeError(f"{site.name}: wanted sizes >= 0, got {values}")
    return values


def get_dimension_size(site: Site) -> Node:
    """The size as a constant: types of arrays say it."""
    (operand,) = site.take(1)
    dimension = site.integer("dimension")
    size = Node(ops.GetDimensionSize(dimension), (operand,))
    if dimension in operand.tensor_type.dynamic_dimensions:
        return size
    return constant(operand.shape[dimension], _INT32)


def set_dimension_size(site: Site) -> Node:
    operand, size = site.take(2)
    dimension = site.integer("dimension")
    dynamic = Node(ops.SetDimensionSize(dimension), (operand, size))
    declared = site.declared_type()
    if not isinstance(declared, TensorType) or dimension in declared.dynamic_dimensions:
        return dynamic
    if operand.shape[dimension] != int(site.value(size)):
        site.fail(
            f"the size is not the bound {operand.shape[dimension]}, so dimension {dimension} is dynamic"
        )
    return Node(ops.SetDimensionSize(dimension, to_bound=True), (operand, size))


def _with_sizes(site: Site, node: Node, sizes: Node) -> Node:
    """`node`, of the bounds, with the sizes that the operand `sizes` gives to what is declared dynamic."""
    declared = site.declared_type()
    for dim in declared.dynamic_dimensions if isinstance(declared, TensorType) else ():
        if dim not in node.tensor_type.dynamic_dimensions:
            one = Node(ops.Slice((dim,), (dim + 1,), (1,)), (sizes,))
            size = Node(ops.Convert(_INT32), (Node(ops.Reshape(()), (one,)),))
            node = Node(ops.SetDimensionSize(dim), (node, size))
    return node


def dynamic_reshape(site: Site) -> Node:
    operand, shape = site.take(2)
    return Node(ops.Reshape(_shape(site, shape)), (operand,))


def dynamic_broadcast_in_dim(site: Site) -> Node:
    operand, shape = site.take(2)
    op = ops.BroadcastInDim(_shape(site, shape), site.integers("broadcast_dimensions"))
    return _with_sizes(site, Node(op, (operand,)), shape)


def dynamic_iota(site: Site) -> Node:
    (shape,) = site.take(1)
    op = ops.Iota(TensorType(_shape(site, shape), site.dtype), site.integer("iota_dimension"))
    return _with_sizes(site, Node(op), shape)


def dynamic_pad(site: Site) -> Node:
    operand, value, *rows = site.take(5)
    low, high, interior = (tuple(site.value(row).reshape(-1).tolist()) for row in rows)
    return Node(ops.Pad(low, high, interior), (operand, value))


def real_dynamic_slice(site: Site) -> Node:
    operand, *rows = site.take(4)
    return Node(ops.Slice(*[static_sizes(site, row) for row in rows]), (operand,))


def dynamic_reduce_window(site: Site) -> Node:
    """Read JAX's call for windows of unknown sizes: arrays, initial values, and five rows of numbers."""
    *arrays, window, strides, base, inner, padding = site.at_least(7)
    op = ops.ReduceWindow(
        window_dimensions=static_sizes(site, window),
        window_strides=static_sizes(site, strides),
        base_dilations=static_sizes(site, base),
        window_dilations=static_sizes(site, inner),
        padding=tuple((int(low), int(high)) for low, high in site.value(padding).reshape(-1, 2)),
        computation=site.called_computation(),
    )
    return Node(op, tuple(arrays))


def shape_assertion(site: Site) -> tuple[Node, ...]:
    """Read the assertion that JAX puts before a function of unknown sizes, and refuse sizes that it excludes."""
    if not site.operands:
        site.fail("expected a condition")
    if not site.value(site.operands[0]).all():
        message = site.word("error_message", "the sizes do not meet the constraints of the module")
        for index, node in enumerate(site.operands[1:]):
            message = message.replace(f"{{{index}}}", str(int(site.value(node))))
        raise ShapeError(message)
    return ()
