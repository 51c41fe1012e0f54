"""Operations over windows that slide over an array."""

from __future__ import annotations

from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType
from xarr.ir.windows import Window
from xarr_reference.values import Array, Computation, Rule, Value, cell, empty, indices, pack


def elements_in(window: Window, number: Ints, shape: Ints) -> list[Ints]:
    """The indices of the elements that lie in one window, row-major; padding and holes have none.

    Element w of window i lies, along each dimension, at i * stride + w * window_dilation - padding_low of
    the dilated array, and so at 1 / base_dilation of that, if that is a whole number, in the array itself.
    """
    positions = [window.position(number, element, shape) for element in window.elements()]
    return [index for index in positions if index is not None]


def reduce_window(node: Node, computation: Computation, *operands: Array) -> Value:
    """result[i] = f(… f(f(initial, first element in window i), second) …, last)

    N accumulators and N elements for N arrays.
    """
    count = len(operands) // 2
    arrays, initial = operands[:count], operands[count:]
    window, shape = node.op.expect(ops.ReduceWindow).window, arrays[0].shape
    windows = window.output_shape(shape)
    results = tuple(empty(TensorType(windows, array.dtype)) for array in arrays)
    for number in indices(windows):
        accumulated: tuple[Value, ...] = initial
        for index in elements_in(window, number, shape):
            accumulated = computation(*accumulated, *[cell(array, index) for array in arrays])
        for result, value in zip(results, accumulated, strict=True):
            result[number] = value[()]
    return pack(results)


def select_and_scatter(
    node: Node, select: Computation, scatter: Computation, operand: Array, source: Array, initial: Array
) -> Array:
    """result = initial everywhere, and then for every window i that has an element

    result[c] = scatter(result[c], source[i]), where c is the last index of which select(operand[c before],
    operand[c]) did not hold, going through the elements in window i; the first index, if it always did.
    """
    result = empty(node.type)
    result[...] = initial
    for number in indices(source.shape):
        inside = elements_in(node.op.expect(ops.SelectAndScatter).window, number, operand.shape)
        if not inside:
            continue
        chosen = inside[0]
        for index in inside[1:]:
            if not select(cell(operand, chosen), cell(operand, index))[0]:
                chosen = index
        result[chosen] = scatter(cell(result, chosen), cell(source, number))[0][()]
    return result


TABLE: Final[dict[type[Op], Rule]] = {
    ops.ReduceWindow: reduce_window,
    ops.SelectAndScatter: select_and_scatter,
}
