"""Convolution, of any number of spatial dimensions.

The labels of the constraints are those of the StableHLO specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xarr.ir.op import Op, operation
from xarr.ir.stablehlo.literals import ints
from xarr.ir.types import Ints, TensorType, Type
from xarr.ir.windows import Window, check_entries, check_padding

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

Pairs = tuple[tuple[int, int], ...]


@operation
class Convolution(Op):
    """Sums of products of a kernel with the windows of an array.

    Operands: lhs, the array, and rhs, the kernel.  result[n, o, w] = Σ over c and k of
    lhs[n, c, position of element k of window w] rhs[o, c, k]: n runs over the batch, c over the input features,
    o over the output features, w and k over the spatial dimensions.  An element of a window that lies in
    padding or in a hole adds nothing, as if it were 0.

    The specs say which dimension is which: `lhs_spec` and `out_spec` are (batch, feature, spatial …),
    `rhs_spec` is (output feature, input feature, spatial …).  With `feature_group_count` G, the features of
    lhs and of the output fall into G runs, and each run of the output sees its run of lhs only.  With
    `batch_group_count` B, the batch falls into B runs instead, and each run of output features sees its run
    of the batch.  With `window_reversal`, a kernel is read from its end along that dimension.

    Products and sums are formed in the wider of the operands' element type and `dtype`, the result's;
    narrower floats in float32; integers modulo 2**width; bools by "and" and "or".

    * C1: operands of one rank N, at least 2.
    * C2, C3: window_strides has N - 2 entries, each positive.
    * C4: padding has N - 2 pairs.
    * C5, C6: lhs_dilation has N - 2 entries, each positive.
    * C7, C8: rhs_dilation has N - 2 entries, each positive.
    * C9: window_reversal has N - 2 entries.
    * C10: batch_group_count divides the batch of lhs.
    * C11: feature_group_count divides the features of lhs.
    * C12, C13: lhs_spec has N entries, each dimension once.
    * C14: the kernel's input features are those of lhs divided by feature_group_count.
    * C15, C16: batch_group_count and feature_group_count divide the kernel's output features.
    * C17, C18: rhs_spec has N entries, each dimension once.
    * C19, C20: out_spec has N entries, each dimension once.
    * C21, C22: feature_group_count and batch_group_count are positive.
    * C23: one of them is 1.
    * C24: there are two precisions.
    * C25: the kernel has at least one element along each spatial dimension, as MLIR and XLA demand.
    * C27: operands of one element type.
    """

    lhs_spec: Ints
    rhs_spec: Ints
    out_spec: Ints
    window_strides: Ints
    padding: Pairs
    lhs_dilation: Ints
    rhs_dilation: Ints
    window_reversal: tuple[bool, ...]
    feature_group_count: int
    batch_group_count: int
    dtype: np.dtype[Any]
    precision: tuple[str, ...] = ("DEFAULT", "DEFAULT")
    name = "stablehlo.convolution"
    lax_name = "conv_general_dilated"

    def infer(self, *operands: Type) -> Type:
        lhs, rhs = self.tensors(operands, 2)
        if lhs.rank != rhs.rank or lhs.rank < 2:
            self.fail(
                "C1",
                f"wanted arrays of one rank of at least 2, batch and feature, got {lhs.short()} and {rhs.short()}",
            )
        if lhs.dtype != rhs.dtype:
            self.fail_dtype(
                "C27",
                f"wanted one element type, got {lhs.short()} and {rhs.short()}; convert_element_type one",
            )
        self._check_specs(lhs.rank)
        self._check_window(lhs.rank - 2, rhs)
        self._check_groups(lhs, rhs)
        if len(self.precision) != 2:
            self.fail("C24", f"wanted a precision for each operand, got {self.precision}")
        window, spatial = self.window(rhs), tuple(lhs.shape[dim] for dim in self.lhs_spec[2:])
        batch, features = lhs.shape[self.lhs_spec[0]], rhs.shape[self.rhs_spec[0]]
        sizes = (batch // self.batch_group_count, features, *window.output_shape(spatial))
        placed = dict(zip(self.out_spec, sizes, strict=True))
        return TensorType(tuple(placed[dim] for dim in range(lhs.rank)), self.dtype)

    def window(self, rhs: TensorType) -> Window:
        """The windows along the spatial dimensions."""
        sizes = [rhs.shape[dim] for dim in self.rhs_spec[2:]]
        return Window.of(
            sizes,
            self.window_strides,
            self.padding,
            self.lhs_dilation,
            self.rhs_dilation,
            self.window_reversal,
        )

    def _check_specs(self, rank: int) -> None:
        for labels, name, spec in (
            (("C12", "C13"), "lhs_spec", self.lhs_spec),
            (("C17", "C18"), "rhs_spec", self.rhs_spec),
            (("C19", "C20"), "out_spec", self.out_spec),
        ):
            if len(spec) != rank:
                self.fail(labels[0], f"wanted {rank} dimensions in {name}, got {spec}")
            if sorted(spec) != list(range(rank)):
                self.fail(labels[1], f"wanted each of the {rank} dimensions once in {name}, got {spec}")

    def _check_window(self, rank: int, rhs: TensorType) -> None:
        where = "the spatial ones"
        check_entries(self, ("C2", "C3"), "window_strides", self.window_strides, rank, where)
        check_padding(self, "C4", self.padding, rank, where)
        check_entries(self, ("C5", "C6"), "lhs_dilation", self.lhs_dilation, rank, where)
        check_entries(self, ("C7", "C8"), "rhs_dilation", self.rhs_dilation, rank, where)
        if len(self.window_reversal) != rank:
            self.fail("C9", f"wanted {rank} entries of window_reversal, got {self.window_reversal}")
        sizes = tuple(rhs.shape[dim] for dim in self.rhs_spec[2:])
        if 0 in sizes:
            self.fail("C25", f"wanted a kernel of at least one element, got spatial sizes {sizes}")

    def _check_groups(self, lhs: TensorType, rhs: TensorType) -> None:
        by_feature, by_batch = self.feature_group_count, self.batch_group_count
        if by_feature < 1:
            self.fail("C21", f"wanted feature_group_count >= 1, got {by_feature}")
        if by_batch < 1:
            self.fail("C22", f"wanted batch_group_count >= 1, got {by_batch}")
        if by_feature > 1 and by_batch > 1:
            self.fail(
                "C23",
                f"wanted groups of features or of the batch, got feature_group_count {by_feature} and "
                f"batch_group_count {by_batch}",
            )
        batch, features = (lhs.shape[dim] for dim in self.lhs_spec[:2])
        out, depth = (rhs.shape[dim] for dim in self.rhs_spec[:2])
        self._check_divides("C10", "batch_group_count", by_batch, f"the batch of {lhs.short()}", batch)
        self._check_divides(
            "C11", "feature_group_count", by_feature, f"the features of {lhs.short()}", features
        )
        if depth != features // by_feature:
            wanted = f"{features} / {by_feature} = {features // by_feature}" if by_feature > 1 else features
            self.fail(
                "C14",
                f"wanted {wanted} input features in the kernel, dimension {self.rhs_spec[1]} of {rhs.short()}, for "
                f"the features of lhs, dimension {self.lhs_spec[1]} of {lhs.short()}; got {depth}",
            )
        where = f"the output features of {rhs.short()}"
        self._check_divides("C15", "batch_group_count", by_batch, where, out)
        self._check_divides("C16", "feature_group_count", by_feature, where, out)

    def _check_divides(self, label: str, name: str, count: int, where: str, size: int) -> None:
        if size % count:
            self.fail(label, f"wanted {name} to divide {where}, got {count} for {size}")

    def assembly(self, node: Node, printer: Printer) -> str:
        numbers = (
            f"{_letters(self.lhs_spec, 'b', 'f')}x{_letters(self.rhs_spec, 'o', 'i')}"
            f"->{_letters(self.out_spec, 'b', 'f')}"
        )
        padding = ", ".join(map(ints, self.padding))
        reverse = ", ".join("true" if each else "false" for each in self.window_reversal)
        window = (
            f"stride = {ints(self.window_strides)}, pad = [{padding}], lhs_dilate = {ints(self.lhs_dilation)}, "
            f"rhs_dilate = {ints(self.rhs_dilation)}, reverse = [{reverse}]"
        )
        precision = ", ".join(f"#stablehlo<precision {each}>" for each in self.precision)
        attributes = (
            f"batch_group_count = {self.batch_group_count} : i64, "
            f"feature_group_count = {self.feature_group_count} : i64, precision_config = [{precision}]"
        )
        return (
            f"{self.name}({printer.names(node.operands)}) dim_numbers = {numbers}, window = {{{window}}} "
            f"{{{attributes}}} : {printer.signature(node)}"
        )


def _letters(spec: Ints, first: str, second: str) -> str:
    """`[b, 0, 1, f]`: what each dimension is."""
    named = dict(zip(spec, (first, second, *map(str, range(len(spec) - 2))), strict=True))
    return f"[{', '.join(named[dim] for dim in range(len(spec)))}]"
