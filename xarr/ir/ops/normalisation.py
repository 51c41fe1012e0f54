"""Batch normalisation: each feature to mean 0 and variance 1, then scaled and moved; and its gradient.

All three are defined in terms of other ops.  float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from xarr.dtypes import FLOAT
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op, operation
from xarr.ir.ops.binary import Add
from xarr.ir.ops.control import Tuple
from xarr.ir.ops.creation import Constant
from xarr.ir.ops.formula import Term, sqrt
from xarr.ir.ops.movement import BroadcastInDim
from xarr.ir.ops.reduction import Reduce
from xarr.ir.stablehlo.literals import float32
from xarr.ir.types import TensorType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer

_F32: Final = np.dtype(np.float32)


class BatchNorm(Op):
    """Base of the three.  `epsilon` is a float32.

    * C1: `feature_index` lies in the operand's rank.
    * C2: floats, all of one type.
    * C3: the other operands are vectors with an element for each feature.
    """

    epsilon: float
    feature_index: int
    has_several_results = True

    def check_operands(self, operands: tuple[Type, ...], count: int) -> tuple[TensorType, TensorType]:
        """The types of the operand and of a vector of features; `count` vectors follow the operand."""
        x, *vectors = self.tensors(operands)
        if not 0 <= self.feature_index < x.rank:
            self.fail(
                "C1", f"wanted a feature_index of {x.short()} in [0, {x.rank}), got {self.feature_index}"
            )
        if x.dtype not in FLOAT or any(vector.dtype is not x.dtype for vector in vectors):
            shown = ", ".join(each.short() for each in (x, *vectors))
            self.fail_dtype("C2", f"wanted floats of one type, got {shown}")
        feature = x.with_shape((x.shape[self.feature_index],))
        for vector in vectors[:count]:
            if vector is not feature:
                self.fail("C3", f"wanted {feature.short()} for {x.short()}, got {vector.short()}")
        return x, feature

    def assembly(self, node: Node, printer: Printer) -> str:
        attributes = f"epsilon = {float32(self.epsilon)} : f32, feature_index = {self.feature_index} : i64"
        names = printer.names(node.operands)
        return f'"{self.name}"({names}) <{{{attributes}}}> : {printer.signature(node)}'

    # --- what the decompositions are made of ---

    def terms(self, operands: tuple[Node, ...]) -> list[Term]:
        """The operands, the vectors spread over the features, in float32 or wider."""
        shape = operands[0].shape
        spread = [operands[0], *[self.spread(node, shape) for node in operands[1:]]]
        return [
            Term(node).convert(_F32 if operands[0].dtype.itemsize < 4 else operands[0].dtype)
            for node in spread
        ]

    def spread(self, node: Node, shape: tuple[int, ...]) -> Node:
        """A vector of features in the operand's shape; what has that shape stays."""
        return node if node.shape == shape else Node(BroadcastInDim(shape, (self.feature_index,)), (node,))

    def over_features(self, term: Term) -> Term:
        """The sum for each feature."""
        rank = len(term.node.shape)
        dims = tuple(dim for dim in range(rank) if dim != self.feature_index)
        zero = Node(Constant.of(np.zeros((), term.dtype)))
        return Term(Node(Reduce(dims, _sum_of(term.dtype)), (term.node, zero)))

    def again(self, vector: Term, like: Term) -> Term:
        """A vector of features in the shape of a term."""
        return Term(Node(BroadcastInDim(like.node.shape, (self.feature_index,)), (vector.node,)))

    def count(self, x: Node) -> float:
        """The number of elements of each feature."""
        return float(prod(size for dim, size in enumerate(x.shape) if dim != self.feature_index))

    @property
    def small(self) -> float:
        return float(np.float32(self.epsilon))


def _sum_of(dtype: np.dtype[np.generic]) -> Graph:
    scalars = [parameter(TensorType((), dtype)) for _ in range(2)]
    return Graph(scalars, (Node(Add(), tuple(scalars)),), "add")


@operation
class BatchNormTraining(BatchNorm):
    """(normalised operand, mean, variance) of an operand, a scale and an offset; NaN of no elements."""

    epsilon: float
    feature_index: int
    name = "stablehlo.batch_norm_training"

    def result_names(self) -> tuple[str, ...]:
        return ("output", "batch_mean", "batch_var")

    def infer(self, *operands: Type) -> Type:
        x, feature = self.check_operands(operands, 2)
        return pack_types((x, feature, feature))

    def decompose(self, *operands: Node) -> Node:
        x, scale, offset = self.terms(operands)
        count = self.count(operands[0])
        mean = self.over_features(x) / count
        centred = x - self.again(mean, x)
        variance = self.over_features(centred * centred) / count
        normal = centred / sqrt(self.again(variance, x) + self.small) * scale + offset
        dtype = operands[0].dtype
        return Node(Tuple(), tuple(term.convert(dtype).node for term in (normal, mean, variance)))


@operation
class BatchNormInference(BatchNorm):
    """The operand normalised by a mean and a variance that are given."""

    epsilon: float
    feature_index: int
    name = "stablehlo.batch_norm_inference"

    def infer(self, *operands: Type) -> Type:
        return self.check_operands(operands, 4)[0]

    def decompose(self, *operands: Node) -> Node:
        x, scale, offset, mean, variance = self.terms(operands)
        normal = (x - mean) / sqrt(variance + self.small) * scale + offset
        return normal.convert(operands[0].dtype).node


@operation
class BatchNormGrad(BatchNorm):
    """The gradients with respect to operand, scale and offset, given that of the normalised operand.

    * C4: `grad_output` has the operand's type.
    """

    epsilon: float
    feature_index: int
    name = "stablehlo.batch_norm_grad"

    def result_names(self) -> tuple[str, ...]:
        return ("grad_operand", "grad_scale", "grad_offset")

    def infer(self, *operands: Type) -> Type:
        x, feature = self.check_operands(operands, 3)
        if operands[4] is not x:
            self.fail("C4", f"wanted a grad_output {x.short()}, got {operands[4].short()}")
        return pack_types((x, feature, feature))

    def decompose(self, *operands: Node) -> Node:
        x, scale, mean, variance, grad = self.terms(operands)
        centred, spread = x - mean, variance + self.small
        deviation = sqrt(spread)
        grad_scale = self.over_features(grad * (centred / deviation))
        grad_offset = self.over_features(grad)
        count = self.count(operands[0])
        product = self.again(self.over_features(grad * centred), x)
        rest = grad * count - self.again(grad_offset, x) - product * centred / spread
        grad_operand = scale / deviation / count * rest
        dtype = operands[0].dtype
        results = (grad_operand, grad_scale, grad_offset)
        return Node(Tuple(), tuple(term.convert(dtype).node for term in results))
