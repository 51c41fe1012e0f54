"""Attributes: every value that stands after `name =`, as plain Python data.

Enumerators become strings, dimension numbers and windows dicts, arrays and lists tuples, elements Literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from xarr.ir.stablehlo.distributed.mesh_syntax import read_mesh, read_part
from xarr.ir.stablehlo.lexer import Lexer
from xarr.ir.stablehlo.syntax_tree import Attribute, Literal
from xarr.ir.stablehlo.type_syntax import Aliases, read_function_type, read_type, starts_type

_ELEMENTS: Final = re.compile(r"dense\s*<([^<>\"]*)>")
_BITS: Final = re.compile(r'dense\s*<\s*"0x([0-9A-Fa-f]*)"\s*>')
_RESOURCE: Final = re.compile(r'dense_resource\s*<\s*([A-Za-z_][\w$.-]*|"[^"\n]*")\s*>')
_FLOATS: Final = {"f16": "<f2", "f32": "<f4", "f64": "<f8"}
_ENUMERATOR: Final = re.compile(r"<\s*\w+\s+(\w+)\s*>")
_DIALECTS: Final = ("stablehlo", "chlo", "mhlo")
#: What precedes the dimension numbers of a convolution.
CONVOLUTION: Final = "dim_numbers"

_Reader = Callable[[Lexer, Aliases], Attribute]


def read_untyped(lexer: Lexer, aliases: Aliases) -> Attribute:
    """The attribute that comes now.  A colon after it is none of its own: the operation's types follow."""
    token = lexer.token
    if token.kind == "string":
        return lexer.string()
    if token.kind in ("integer", "hex", "float"):
        return _untyped_number(lexer)
    if token.text in _ELEMENTS_OF:
        return _literal(lexer, *_ELEMENTS_OF[token.text])
    return read_attribute(lexer, aliases)


def read_attribute(lexer: Lexer, aliases: Aliases) -> Attribute:
    """The attribute that comes now, and the type after it where there is one."""
    token = lexer.token
    reader = _BY_KIND.get(token.kind) or _BY_TEXT.get(token.text)
    if reader is not None:
        return reader(lexer, aliases)
    if starts_type(lexer):
        return read_type(lexer, aliases)
    if token.kind != "word":
        lexer.fail("an attribute")
    lexer.advance()
    if lexer.at("<"):
        return token.text + lexer.skip_group()
    return token.text


def read_dictionary(lexer: Lexer, aliases: Aliases, closing: str = "}") -> dict[str, Attribute]:
    """`name = attribute, name` up to the closing bracket, the opening one being read."""
    attributes: dict[str, Attribute] = {}
    with lexer.deeper():
        for _ in lexer.items(closing, "after the attributes"):
            key = (
                lexer.string()
                if lexer.token.kind == "string"
                else lexer.take("word", "the name of an attribute").text
            )
            attributes[key] = _value(key, lexer, aliases, read_attribute) if lexer.accept("=") else True
    return attributes


def _value(key: str, lexer: Lexer, aliases: Aliases, read: _Reader) -> Attribute:
    if key == CONVOLUTION:
        return read_convolution(lexer)
    if key == "sub_axis_info":
        return read_part(lexer)
    return _fields(lexer, aliases) if lexer.at("<") else read(lexer, aliases)


def read_named(lexer: Lexer, aliases: Aliases) -> tuple[str, Attribute]:
    """`name = attribute` of a pretty form, in which `[0] x [1]` is a pair of lists."""
    key = lexer.take("word", "the name of an attribute").text
    lexer.expect("=", f"after {key}")
    value = _value(key, lexer, aliases, read_untyped)
    if lexer.at("x") and lexer.follows("["):
        lexer.advance()
        return key, (value, read_attribute(lexer, aliases))
    return key, value


def skip_type(lexer: Lexer, aliases: Aliases) -> str:
    """Step over `: type` if it comes now, and say which type it was, "" if none."""
    if not lexer.accept(":"):
        return ""
    name = lexer.token.text
    read_type(lexer, aliases)
    return name


# --- numbers, strings, lists ------------------------------------------------------------------------


def _number(lexer: Lexer, aliases: Aliases) -> Attribute:
    kind, value = lexer.token.kind, _untyped_number(lexer)
    type = skip_type(lexer, aliases)
    if kind == "hex" and type in _FLOATS:
        # MLIR writes NaN and infinities as their bits.
        bits, dtype = int(value), np.dtype(_FLOATS[type])
        return float(
            np.frombuffer((bits % 2 ** (8 * dtype.itemsize)).to_bytes(dtype.itemsize, "little"), dtype)[0]
        )
    return value


def _untyped_number(lexer: Lexer) -> float:
    token = lexer.advance()
    return float(token.text) if token.kind == "float" else lexer.number(token)


def _string(lexer: Lexer, aliases: Aliases) -> Attribute:
    value = lexer.string()
    skip_type(lexer, aliases)
    return value


def _boolean(lexer: Lexer, aliases: Aliases) -> Attribute:
    return lexer.advance().text == "true"


def _unit(lexer: Lexer, aliases: Aliases) -> Attribute:
    lexer.advance()
    return True


def _symbol(lexer: Lexer, aliases: Aliases) -> Attribute:
    name = lexer.symbol()
    while lexer.accept("::"):
        name = f"{name}::{lexer.symbol()}"
    return name


def _list(lexer: Lexer, aliases: Aliases) -> Attribute:
    lexer.expect("[")
    with lexer.deeper():
        items = lexer.items("]", "after the elements of the list")
        return tuple([read_attribute(lexer, aliases) for _ in items])


def _dictionary(lexer: Lexer, aliases: Aliases) -> Attribute:
    lexer.expect("{")
    return read_dictionary(lexer, aliases)


def _array(lexer: Lexer, aliases: Aliases) -> Attribute:
    lexer.expect("array")
    lexer.expect("<", "after array")
    read_type(lexer, aliases)
    where = "after the elements of the array"
    if not lexer.accept(":"):
        lexer.expect(">", where)
        return ()
    return tuple([read_attribute(lexer, aliases) for _ in lexer.items(">", where)])


def _location(lexer: Lexer, aliases: Aliases) -> Attribute:
    lexer.expect("loc")
    lexer.skip_group()
    return None


def _function_type(lexer: Lexer, aliases: Aliases) -> Attribute:
    return read_function_type(lexer, aliases)


# --- elements ---------------------------------------------------------------------------------------


_Styles = tuple[tuple[re.Pattern[str], str], ...]

_ELEMENTS_OF: Final[dict[str, tuple[_Styles, str]]] = {
    "dense": (((_BITS, "hex"), (_ELEMENTS, "list")), "elements: dense<…>"),
    "dense_resource": (((_RESOURCE, "resource"),), "the name of a resource: dense_resource<name>"),
}


def _elements(lexer: Lexer, aliases: Aliases) -> Attribute:
    elements = _literal(lexer, *_ELEMENTS_OF[lexer.token.text])
    return replace(elements, type=read_type(lexer, aliases)) if lexer.accept(":") else elements


def _literal(lexer: Lexer, styles: _Styles, expected: str) -> Literal:
    position = lexer.token.start
    for pattern, style in styles:
        match = lexer.match(pattern)
        if match is not None:
            body = match.group(1).strip('"') if style == "resource" else match.group(1)
            return Literal(style, body, position)
    lexer.fail(expected)


# --- attributes of dialects -------------------------------------------------------------------------


def _hash(lexer: Lexer, aliases: Aliases) -> Attribute:
    token = lexer.advance()
    dialect, _, name = token.text[1:].partition(".")
    if token.text in aliases:
        return aliases[token.text]
    if dialect not in _DIALECTS:
        if lexer.at("<"):
            return token.text + lexer.skip_group()
        if name:
            return token.text
        raise lexer.text.error(f"the attribute alias {token.text} is not defined", token.start)
    if not lexer.at("<"):
        return token.text
    match = None if name else lexer.match(_ENUMERATOR)
    if match is not None:
        return match.group(1)
    if name == "mesh":
        return read_mesh(lexer)
    if name == "conv":
        return _in_angles(lexer, lambda: read_convolution(lexer))
    return _fields(lexer, aliases)


def _in_angles(lexer: Lexer, read: Callable[[], Attribute]) -> Attribute:
    lexer.expect("<")
    value = read()
    lexer.expect(">")
    return value


def _fields(lexer: Lexer, aliases: Aliases) -> Attribute:
    """`<name = value, …>` as a dict; `<VALUE>` as the string."""
    lexer.expect("<")
    if lexer.token.kind == "word" and lexer.follows(">"):
        word = lexer.advance().text
        lexer.expect(">")
        return word
    return read_dictionary(lexer, aliases, ">")


def read_convolution(lexer: Lexer) -> dict[str, Attribute]:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` as the named dimensions of the three arrays."""
    attributes: dict[str, Attribute] = {}
    _dimensions(lexer, attributes, "input", {"b": "batch", "f": "feature"})
    lexer.expect("x", "between the dimensions of input and kernel")
    _dimensions(lexer, attributes, "kernel", {"i": "input_feature", "o": "output_feature"})
    lexer.expect("->", "before the dimensions of the output")
    _dimensions(lexer, attributes, "output", {"b": "batch", "f": "feature"})
    return attributes


def _dimensions(lexer: Lexer, attributes: dict[str, Attribute], array: str, letters: dict[str, str]) -> None:
    start = lexer.expect("[", f"before the dimensions of the {array}").start
    spatial: dict[int, int] = {}
    named: set[str] = set()
    position = 0
    for _ in lexer.items("]", f"after the dimensions of the {array}"):
        if lexer.token.kind == "integer":
            spatial[lexer.integer()] = position
        elif lexer.token.text in letters:
            letter = lexer.advance().text
            named.add(letter)
            attributes[f"{array}_{letters[letter]}_dimension"] = position
        else:
            lexer.fail(f"a spatial dimension or one of {', '.join(letters)}")
        position += 1
    if named != set(letters) or sorted(spatial) != list(range(position - len(letters))):
        message = f"expected {', '.join(letters)} and the spatial dimensions 0, 1 …, each once"
        raise lexer.text.error(message, start)
    attributes[f"{array}_spatial_dimensions"] = tuple(spatial[number] for number in sorted(spatial))


_BY_KIND: Final[dict[str, _Reader]] = {
    "string": _string,
    "integer": _number,
    "hex": _number,
    "float": _number,
    "symbol": _symbol,
    "hash": _hash,
}
_BY_TEXT: Final[dict[str, _Reader]] = {
    "[": _list,
    "{": _dictionary,
    "(": _function_type,
    "true": _boolean,
    "false": _boolean,
    "unit": _unit,
    "array": _array,
    "dense": _elements,
    "dense_resource": _elements,
    "loc": _location,
}
