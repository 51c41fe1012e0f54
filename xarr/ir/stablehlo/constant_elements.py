"""The bytes of a constant from its text: lists, splats, hexadecimal strings and resources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, SUB_BYTE, element_type, real_part_of
from xarr.errors import ParseError
from xarr.ir.stablehlo.lexer import Text
from xarr.ir.stablehlo.syntax_tree import Literal
from xarr.ir.types import TensorType

DType = np.dtype[Any]

_COMMENT: Final = re.compile(r"//[^\n]*")
_PIECE: Final = re.compile(r"\s*(?:([\[\],])|(\([^()\[\]]*\)|[^\s\[\](),]+))")
_DECIMAL: Final = re.compile(r"-?\d{1,40}")
_BITS: Final = re.compile(r"0x[0-9A-Fa-f]{1,32}")
_FLOAT: Final = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?")
_HEADER: Final = 4
#: Sizes of a shape that an error lists.
_MOST_LISTED: Final = 64


class LiteralElements:
    """The elements of a constant: `raw` holds all of them, or the single one of a splat."""

    def __init__(self, type: TensorType, raw: bytes, is_splat: bool) -> None:
        self.type = type
        self.raw = raw
        self.is_splat = is_splat

    def all(self) -> bytes:
        """The bytes of every element."""
        return self.raw * self.type.size if self.is_splat else self.raw

    def array(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.all(), self.type.dtype).reshape(self.type.shape)


def read_elements(
    literal: Literal, type: TensorType, text: Text, resources: dict[str, str]
) -> LiteralElements:
    """The elements of `literal`, which must be those of an array of `type`.

    Nothing is allocated beyond the length of the text.  Raises ParseError for another number of elements, for
    ragged lists and for elements that the type cannot hold.
    """
    if literal.style == "hex":
        return _from_bytes(literal, type, literal.body, text)
    if literal.style == "list":
        return _from_list(literal, type, text)
    if literal.body not in resources:
        raise text.error(f"there is no resource called {literal.body!r}", literal.position)
    # A resource begins with its alignment.
    return _from_bytes(literal, type, resources[literal.body][2 * _HEADER :], text)


def _from_bytes(literal: Literal, type: TensorType, digits: str, text: Text) -> LiteralElements:
    if len(digits) % 2:
        raise text.error("expected two hexadecimal digits for each byte", literal.position)
    raw = bytes.fromhex(digits)
    if type.dtype == np.bool_:
        raw = _bools(raw, type.size)
    if type.dtype in SUB_BYTE:  # the lower bits of a byte each; the others do not count
        raw = bytes(byte & 2 ** element_type(type.dtype).bits - 1 for byte in raw)
    if len(raw) == type.nbytes:
        return LiteralElements(type, raw, False)
    if len(raw) == type.dtype.itemsize and literal.style == "hex":
        return LiteralElements(type, raw, True)
    raise text.error(f"expected {type.nbytes} bytes for {type}, got {len(raw)}", literal.position)


def _bools(raw: bytes, size: int) -> bytes:
    """One byte for each bool.  MLIR once packed eight into a byte, and a splat into 00 or FF."""
    if raw in (b"\0", b"\1", b"\xff") or len(raw) == size or len(raw) != -(-size // 8):
        return bytes(map(bool, raw))
    return np.unpackbits(np.frombuffer(raw, np.uint8), count=size, bitorder="little").tobytes()


def _from_list(literal: Literal, type: TensorType, text: Text) -> LiteralElements:
    items, shape = _flatten_literal(literal, text)
    is_splat = shape is None
    if not is_splat and shape != type.shape and not (shape == () and not type.size):
        got = shape if shape is None or len(shape) <= _MOST_LISTED else f"lists that nest {len(shape)} deep"
        raise text.error(f"expected elements of shape {type.shape}, got {got}", literal.position)
    if is_splat and not type.size:
        return LiteralElements(type, b"", False)
    try:
        raw = _convert(items, type.dtype).tobytes()
    except ValueError as error:
        if isinstance(error, ParseError):
            raise
        raise text.error(f"an element that {type.dtype} cannot hold: {error}", literal.position) from None
    return LiteralElements(type, raw, is_splat and type.size > 1)


def _flatten_literal(literal: Literal, text: Text) -> tuple[list[str], tuple[int, ...] | None]:
    """The elements in order and the shape of the lists: None for one element, () for none at all."""
    body = _COMMENT.sub("", literal.body) if "//" in literal.body else literal.body
    items: list[str] = []
    lists = _Lists()
    position, end = 0, len(body.rstrip())
    while position < end:
        match = _PIECE.match(body, position)
        if match is None:
            raise text.error(
                f"{body[position : position + 20].strip()!r} is not an element", literal.position
            )
        position = match.end()
        if not lists.step(match.group(1)):
            raise text.error("the lists of elements are ragged or not closed", literal.position)
        if match.group(1) is None:
            items.append(match.group(2))
    if not items and not lists.shape:
        return items, ()
    if not lists.is_complete:
        raise text.error("the lists of elements are ragged or not closed", literal.position)
    return items, None if lists.shape is None else tuple(lists.shape)


class _Lists:
    """Follows brackets and commas; knows the shape once the first list of each level has ended."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._counts: list[int] = []
        self._comma = False
        self._done = False
        self._bottom: int | None = None

    def step(self, mark: str | None) -> bool:
        """Take the next bracket or comma, or (None) an element; False if it cannot stand here."""
        if mark == "]":
            return self._close()
        if mark == ",":
            fits = bool(self._counts) and self._counts[-1] > 0 and not self._comma
            self._comma = True
            return fits
        if self._done or (self._counts and self._counts[-1] and not self._comma):
            return False
        self._comma = False
        if self._counts:
            self._counts[-1] += 1
        if mark == "[":
            self._counts.append(0)
            return self._bottom is None or len(self._counts) <= self._bottom
        self._done = not self._counts
        self._bottom = len(self._counts) if self._bottom is None else self._bottom
        return self._bottom == len(self._counts)

    def _close(self) -> bool:
        if not self._counts or self._comma:
            return False
        depth, count = len(self._counts), self._counts.pop()
        self._done = not self._counts
        return self._sizes.setdefault(depth, count) == count

    @property
    def is_complete(self) -> bool:
        return self._done

    @property
    def shape(self) -> list[int] | None:
        """None for an element outside of all lists."""
        return [self._sizes[depth] for depth in sorted(self._sizes)] or None


# --- elements of one type ---------------------------------------------------------------------------


def _convert(items: Sequence[str], dtype: DType) -> np.ndarray[Any, Any]:
    if dtype in COMPLEX:
        parts = [part.strip() for item in items for part in _pair(item)]
        return _floats(parts, real_part_of(dtype)).view(dtype)
    kind = element_type(dtype).kind
    if kind == "float":
        return _floats(items, dtype)
    if kind in ("signed", "unsigned"):
        return _integers(items, dtype)
    known = {"true": True, "false": False, "1": True, "0": False, "-1": True}
    wrong = next((item for item in items if item not in known), None)
    if wrong is not None:
        raise ValueError(f"expected true or false, got {wrong!r}")
    return np.array([known[item] for item in items], np.bool_)


def _pair(item: str) -> list[str]:
    parts = item[1:-1].split(",") if item.startswith("(") else []
    if len(parts) != 2:
        raise ValueError(f"expected (real,imaginary), got {item!r}")
    return parts


def _integers(items: Sequence[str], dtype: DType) -> np.ndarray[Any, Any]:
    wrong = next((item for item in items if not _DECIMAL.fullmatch(item) and not _BITS.fullmatch(item)), None)
    if wrong is not None:
        raise ValueError(f"expected an integer, got {wrong[:40]!r}")
    values = [int(item, 0) if item.startswith("0x") else int(item) for item in items]
    width = element_type(dtype).bits
    # The bits of a type without sign may be written as one with or without.
    low = 0 if element_type(dtype).kind == "unsigned" else -(2 ** (width - 1))
    if values and not (low <= min(values) and max(values) < 2**width):
        raise ValueError(f"{min(values)} … {max(values)} exceeds {width} bits")
    return np.array([value % 2**width for value in values], f"u{dtype.itemsize}").view(dtype)


def _floats(items: Sequence[str], dtype: DType) -> np.ndarray[Any, Any]:
    decimal = [_FLOAT.fullmatch(item) is not None for item in items]
    values = np.array(
        [float(item) if good else 0.0 for item, good in zip(items, decimal, strict=True)], np.float64
    )
    with np.errstate(over="ignore"):
        result = _narrow(values, dtype)
    bits = result.view(f"u{dtype.itemsize}")
    for index, item in enumerate(items):
        if not decimal[index]:
            if not _BITS.fullmatch(item) or int(item, 16) >= 2 ** element_type(dtype).bits:
                raise ValueError(f"expected a float or the bits of one, got {item[:40]!r}")
            bits[index] = int(item, 16)
    return result


def _narrow(values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """float64 rounded once, where ml_dtypes would go through float32 and round twice."""
    if dtype in (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16)):
        return values.astype(dtype)
    return _to_odd(values).astype(dtype)


def _to_odd(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 rounded to odd: a second rounding, to any narrower type, then gives what one alone would."""
    single = values.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.int32)
    inexact = (back != values) & np.isfinite(single) & (bits & 1 == 0)
    away = (np.abs(back) < np.abs(values)).astype(np.int32)
    return np.where(inexact, bits - 1 + 2 * away, bits).astype(np.int32).view(np.float32)
