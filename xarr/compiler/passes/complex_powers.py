"""Powers of complex numbers with small whole exponents as the products that NumPy makes of them.

NumPy multiplies repeatedly where the exponent is a whole number between -100 and 100.  Where such an exponent is known,
only these products are left, with NumPy's bits, infinities and NaN; no product is rounded together with a sum.

Source: NumPy, `npy_cpow`, `cmul` and `cdiv` in `npy_math_complex.c`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from xarr.dtypes import COMPLEX
from xarr.ir import ops
from xarr.ir.constants import repeated_number
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.formula import Term, where
from xarr.ir.rewriting import rewritten_throughout

#: The real and the imaginary part.
_Parts: TypeAlias = tuple[Term, Term]

#: Exponents of this magnitude, and larger ones, make no products.
_EXPONENTS: Final = 100


def expand_complex_powers(graph: Graph) -> Graph:
    """`graph` with products in place of such powers, in the graphs of its operations too; itself if it has none."""
    return rewritten_throughout(graph, _product) if ops.Power in graph.op_classes else graph


def _product(node: Node, operands: tuple[Node, ...]) -> Node | None:
    exponent = _whole_exponent(node) if isinstance(node.op, ops.Power) else None
    return None if exponent is None else _power(operands[0], exponent)


def _whole_exponent(node: Node) -> int | None:
    """The exponent of a power of complex numbers, if it is a whole number that NumPy multiplies for."""
    exponent = repeated_number(node.operands[1]) if node.dtype in COMPLEX else None
    if exponent is None:
        return None
    number = complex(exponent[()])
    is_whole = number.imag == 0 and abs(number.real) < _EXPONENTS and number.real == int(number.real)
    return int(number.real) if is_whole else None


def _power(base: Node, exponent: int) -> Node:
    """The base to a whole exponent."""
    real, imag = Term(Node(ops.Real(), (base,))), Term(Node(ops.Imag(), (base,)))
    one, zero = real.constant(1), real.constant(0)
    if exponent == 1:
        parts = real, imag
    elif exponent in (2, 3):
        parts = square = _multiply((real, imag), (real, imag))
        if exponent == 3:
            parts = _multiply((real, imag), square)
    else:
        parts = _repeated_product((real, imag), (one, zero), abs(exponent))
    if exponent < 0:
        parts = _reciprocal(parts)
    # 0 to the power 0 is 1, which no product has changed.
    if exponent:
        of_zero = zero if exponent > 0 else real.constant(np.nan)
        is_zero = real.eq(0) & imag.eq(0)
        parts = where(is_zero, of_zero, parts[0]), where(is_zero, of_zero, parts[1])
    return Node(ops.Complex(), tuple([part.node for part in parts]))


def _multiply(x: _Parts, y: _Parts) -> _Parts:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _repeated_product(base: _Parts, product: _Parts, exponent: int) -> _Parts:
    """A product with those powers of the base whose exponents are the powers of two in `exponent`."""
    while exponent:
        if exponent % 2:
            product = _multiply(product, base)
        exponent //= 2
        if exponent:
            base = _multiply(base, base)
    return product


def _reciprocal(x: _Parts) -> _Parts:
    """1 / x by Smith's formula, in which 0 as the dividend's imaginary part takes part."""
    real, imag = x
    is_wide = ~(abs(real) < abs(imag))
    larger, smaller = where(is_wide, real, imag), where(is_wide, imag, real)
    ratio = smaller / larger
    scale = 1.0 / (larger + smaller * ratio)
    zero = real.constant(0)
    first = where(is_wide, zero * ratio + 1.0, ratio + 0.0) * scale
    second = where(is_wide, zero - ratio, zero * ratio - 1.0) * scale
    is_zero = real.eq(0) & imag.eq(0)
    return where(is_zero, 1.0 / abs(real), first), where(is_zero, 0.0 / abs(imag), second)
