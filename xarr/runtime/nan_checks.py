"""Evaluation op by op that looks for NaNs and infinities: `config.debug_nans`, `config.debug_overflow`.

As with NumPy's `errstate(invalid="raise", over="raise")`, an error is what an op makes out of numbers, not
what it hands on.  Jitted functions run as plain ones meanwhile, so that every op has its source line; the
bodies of loops and branches are looked at as one op.  Slow: each op is a program of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from xarr.base.configuration import current as config
from xarr.dtypes import COMPLEX, FLOAT
from xarr.errors import NotANumberError, NumberOverflowError
from xarr.ir.device import Device
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops import BitcastConvert, Constant
from xarr.ir.types import TensorType
from xarr.runtime.pending import order_of

Numbers: TypeAlias = np.ndarray[Any, Any] | None
Run: TypeAlias = Callable[[list[Node], list[Node], Device], None]


def run_checked(roots: list[Node], device: Device, run: Run) -> None:
    """Compute the `roots` and every array below them by `run`, each alone, and check its numbers.

    Raises NotANumberError, NumberOverflowError, each with the op, the index of the number, the numbers that
    it was made of, and the source line.
    """
    for node in order_of(roots):
        if node.value is None and type(node.type) is TensorType and node.operands:
            order = order_of([node])
            leaves = [one for one in order if _has_numbers(one)]
            values = [_numbers(leaf) for leaf in leaves]
            op, direct = node.op, set(node.operands)  # A node with a value has them no longer.
            run(order, [node], device)
            if type(op) is not BitcastConvert:
                near = [value for leaf, value in zip(leaves, values, strict=True) if leaf in direct]
                near = near if op.is_elementwise else []  # Others combine numbers of other indices.
                _check(op, node, values, near)
    left = [root for root in roots if root.value is None]
    if left:
        run(order_of(left), left, device)


def _has_numbers(node: Node) -> bool:
    return type(node.type) is TensorType and (node.value is not None or type(node.op) is Constant)


def _numbers(node: Node) -> Numbers:
    """The values of floats on the host, None for other types."""
    if node.type.dtype not in FLOAT | COMPLEX:  # type: ignore[union-attr]
        return None
    if node.value is None:
        return np.asarray(node.op.array) if isinstance(node.op, Constant) else None
    assert node.device is not None
    node.exposed = True
    return node.device.backend.to_host(node.value)  # type: ignore[no-any-return]


def _check(op: Op, node: Node, values: list[Numbers], near: list[Numbers]) -> None:
    """Look at the value of `node`, made by `op` of `values`, of which `near` are its own operands."""
    elements = _numbers(node)
    if elements is None:
        return
    floats = [value for value in values if value is not None]
    if config.debug_nans:
        bad = np.isnan(elements)
        if bad.any() and not any(np.isnan(value).any() for value in floats):
            raise NotANumberError(_message(op, node, "a NaN", bad, near))
    if config.debug_overflow:
        bad = np.isinf(elements)
        if bad.any() and all(np.isfinite(value).all() for value in floats):
            raise NumberOverflowError(_message(op, node, "an infinity", bad, near))


def _message(op: Op, node: Node, what: str, bad: np.ndarray[Any, Any], near: list[Numbers]) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    count = int(bad.sum())
    others = f", the first of {count}," if count > 1 else ""
    at = f" at index {index}{others}" if index else ""
    of = [f"{value[index]}" for value in near if value is not None and value.shape == bad.shape]
    made = f" of {' and '.join(of)}" if of else ""
    line = f"; built at {node.source}" if node.source else ""
    return f"{op.lax_name} made {what}{made}{at} in {node.type.short()}{line}"
