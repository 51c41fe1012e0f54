"""Types: `tensor<2x3xf32>`, `tuple<…>`, aliases, and the ones that xarr refuses."""

from __future__ import annotations

import re
from math import prod
from typing import Any, Final

import numpy as np

from xarr.dtypes import from_mlir_name
from xarr.errors import DTypeError
from xarr.ir.stablehlo.lexer import Lexer
from xarr.ir.stablehlo.syntax_tree import DynamicType, FunctionType, ReadType, UnsupportedType
from xarr.ir.types import TensorType, TokenType, TupleType

_TENSOR: Final = re.compile(
    r"tensor\s*<\s*(?P<sizes>(?:(?:\d+|\?)\s*x\s*)*)(?P<element>complex\s*<\s*\w+\s*>|[A-Za-z]\w*)\s*"
    r"(?:,\s*#stablehlo\.(?:bounds\s*<|type_extensions\s*<\s*bounds\s*=\s*\[)"
    r"(?P<bounds>\s*(?:\d+|\?)(?:\s*,\s*(?:\d+|\?))*\s*)(?:\]\s*)?>\s*)?>"
)
_SIZE: Final = re.compile(r"\d+|\?")
_MOST_ELEMENTS: Final = 2**62
_HIGHEST_RANK: Final = 64
_SCALAR: Final = re.compile(r"(?:[su]?i\d+|f\d\w*|bf16|tf32|index|none)$")
#: What tokens are called, by StableHLO and, before it, by MHLO.
_TOKENS: Final = ("!stablehlo.token", "!mhlo.token")
_FOREIGN: Final = ("memref", "vector", "tensor")

Aliases = dict[str, Any]


def read_type(lexer: Lexer, aliases: Aliases) -> ReadType:
    """The type that comes now."""
    token = lexer.token
    if token.text == "tensor" and (match := lexer.match(_TENSOR)):
        return _tensor(lexer, match, token.start)
    if token.text == "tuple" and lexer.follows("<"):
        return _tuple(lexer, aliases)
    if token.kind == "bang":
        return _dialect_type(lexer, aliases)
    if token.text == "complex" and lexer.follows("<"):
        lexer.advance()
        name = f"complex{lexer.skip_group()}"
        return _element(name, "".join(name.split()))
    if token.kind == "word" and token.text in _FOREIGN and lexer.follows("<"):
        lexer.advance()
        return _foreign(token.text + lexer.skip_group())
    if token.kind == "word" and _SCALAR.match(token.text):
        lexer.advance()
        return _element(token.text, token.text)
    lexer.fail("a type")


def starts_type(lexer: Lexer) -> bool:
    """Whether a type comes now."""
    token = lexer.token
    if token.kind != "word":
        return token.kind == "bang"
    named = token.text in ("tuple", "complex", *_FOREIGN) and lexer.follows("<")
    return named or _SCALAR.match(token.text) is not None


def read_types(lexer: Lexer, aliases: Aliases) -> tuple[ReadType, ...]:
    """`(type, type)` or one type without parentheses."""
    if not lexer.at("("):
        return (read_type(lexer, aliases),)
    lexer.advance()
    return tuple([read_type(lexer, aliases) for _ in lexer.items(")", "after the types")])


def read_function_type(lexer: Lexer, aliases: Aliases) -> FunctionType:
    """`(types) -> types`."""
    parameters = read_types(lexer, aliases)
    lexer.expect("->", "between the types of operands and results")
    return FunctionType(parameters, read_types(lexer, aliases))


def _element(shown: str, name: str, sizes: tuple[int | None, ...] = ()) -> ReadType:
    spelled = "i64" if name == "index" else name[1:] if name.startswith("si") else name
    try:
        dtype: np.dtype[Any] = from_mlir_name(spelled)
    except DTypeError:
        return UnsupportedType(shown, f"xarr has no element type {name}")
    known = tuple(size for size in sizes if size is not None)
    return TensorType(known, dtype) if len(known) == len(sizes) else DynamicType(sizes, dtype)


def _tensor(lexer: Lexer, match: re.Match[str], start: int) -> ReadType:
    digits = _SIZE.findall(match["sizes"])
    if len(digits) > _HIGHEST_RANK:
        raise lexer.text.error(f"expected at most {_HIGHEST_RANK} dimensions, got {len(digits)}", start)
    if any(len(size) > 19 for size in digits):
        raise lexer.text.error("a size that no array can have", start)
    sizes = tuple(None if size == "?" else int(size) for size in digits)
    bounds = _bounds(lexer, digits, match["bounds"], start)
    if prod(size for size in (*sizes, *bounds) if size) > _MOST_ELEMENTS:
        raise lexer.text.error("more elements than any array can have", start)
    type = _element(match.group(), "".join(match["element"].split()), sizes)
    if not isinstance(type, DynamicType) or not any(bounds):
        return type
    shape = tuple(bound if size is None else size for size, bound in zip(sizes, bounds, strict=True))
    known = tuple(size for size in shape if size is not None)
    if len(known) < len(shape):
        return UnsupportedType(match.group(), "all unknown sizes have bounds, or none")
    return TensorType(known, type.dtype, tuple(size is None for size in sizes))


def _bounds(lexer: Lexer, sizes: list[str], text: str | None, start: int) -> tuple[int | None, ...]:
    """The bound of each dimension, or None."""
    texts = _SIZE.findall(text or "") or ["?"] * len(sizes)
    if len(texts) != len(sizes):
        raise lexer.text.error(f"expected {len(sizes)} bounds, got {len(texts)}", start)
    if any(len(bound) > 19 for bound in texts):
        raise lexer.text.error("a bound that no array can have", start)
    if any(bound != "?" and size != "?" for size, bound in zip(sizes, texts, strict=True)):
        raise lexer.text.error("a size that is known has no bound; write ? for it", start)
    return tuple(None if bound == "?" else int(bound) for bound in texts)


def _tuple(lexer: Lexer, aliases: Aliases) -> ReadType:
    lexer.advance()
    lexer.expect("<")
    with lexer.deeper():
        elements = [read_type(lexer, aliases) for _ in lexer.items(">", "after the types of the tuple")]
    known = tuple(element for element in elements if isinstance(element, TensorType | TupleType))
    if len(known) == len(elements):
        return TupleType(known)
    other = next(element for element in elements if not isinstance(element, TensorType | TupleType))
    reason = other.reason if isinstance(other, UnsupportedType) else "a tuple holds an array of unknown size"
    return UnsupportedType(f"tuple<{', '.join(map(str, elements))}>", reason)


def _dialect_type(lexer: Lexer, aliases: Aliases) -> ReadType:
    token = lexer.advance()
    if token.text in aliases:
        aliased: ReadType = aliases[token.text]
        return aliased
    if "." not in token.text:
        raise lexer.text.error(f"the type alias {token.text} is not defined", token.start)
    return _foreign(token.text + (lexer.skip_group() if lexer.at("<") else ""))


def _foreign(text: str) -> ReadType:
    if text in _TOKENS:
        return TokenType()
    if "!quant." in text:
        return UnsupportedType(text, "quantised types are not supported")
    return UnsupportedType(text, "xarr knows ranked tensors without encoding, and tuples of them")
