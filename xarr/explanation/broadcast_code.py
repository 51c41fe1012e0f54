"""The facts of a broadcast said as code: the loop, the explicit ops, the fixes and the alternatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import prod

from xarr.base.broadcasting import (
    LISTED,
    Alignment,
    alignments,
    ambiguous_alternatives,
    count_alignments,
    fixes,
    new_axis_index,
)
from xarr.errors import pluralize
from xarr.explanation.broadcast_facts import BroadcastFacts, Operand

_SHOWN = 6
"""How many alternatives a warning shows: all of them up to rank 4."""

_MANY = 10**6
"""Elements that are worth a word on memory even where their type is not known."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

_LETTERS = "ijklmnpqrstuvw"


@dataclass(frozen=True, slots=True)
class AlignmentStep:
    """One step of the alignment: its name, what it does, and the operands' shapes after it."""

    name: str
    text: str
    shapes: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An expression that runs where the given one does not, or means something else.

    `explicit` is the same in one op of `xarr.lax`; None if there is no such op.
    """

    expression: str
    explicit: str | None
    result: str


@dataclass(frozen=True, slots=True)
class Warn:
    """A warning: its kind, one line per sentence, what the user may have meant, and what is left out."""

    kind: str
    lines: tuple[str, ...]
    suggestions: tuple[Suggestion, ...] = ()
    more: str = ""


def human_bytes(number: int) -> str:
    """`100 B`, `6.6 KiB`."""
    if number.bit_length() > 1000:
        return f"more than 2**{number.bit_length() - 1} B"
    unit = min((number.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{number} B" if unit < 1 else f"{number / 1024**unit:.1f} {_UNITS[unit]}"


def list_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


# --- the loop -------------------------------------------------------------------------------------


def loop_variables(facts: BroadcastFacts) -> tuple[str, ...]:
    """One name per result axis: i, j, k … while they last and no operand has the name, else i0, i1 …."""
    used = set(re.findall(r"\w+", " ".join(facts.names)))
    letters = [letter for letter in _LETTERS if letter not in used]
    if facts.rank <= len(letters):
        return tuple(letters[: facts.rank])
    free = (f"i{n}" for n in count() if f"i{n}" not in used)
    return tuple(islice(free, facts.rank))


def index_operand(facts: BroadcastFacts, operand: int, indices: Sequence[str], separator: str = ",") -> str:
    """The operand as the loop reads it: `b[j]`, `a[i,0]` along a stretched axis, `s` for a scalar."""
    own = [
        "0" if cell.kind == "stretched" else indices[axis]
        for axis, cell in enumerate(facts.rows[operand])
        if cell.kind != "new"
    ]
    return facts.terms[operand] + (f"[{separator.join(own)}]" if own else "")


def loop_body(facts: BroadcastFacts, indices: Sequence[str], separator: str = ",") -> str:
    """`result[i,j] = a[i,0] - b[j]`."""
    result = facts.result
    assert result is not None, "only aligned operands have a loop"
    target = result.name + (f"[{separator.join(indices)}]" if indices else "")
    reads = [index_operand(facts, i, indices, separator) for i in range(len(facts.operands))]
    if facts.operator.is_statement:
        return facts.operator.apply(reads)
    return f"{target} = {facts.operator.apply(reads)}"


def loop_nest(facts: BroadcastFacts) -> str:
    """The loops around the body, as Python."""
    result, variables = facts.result, loop_variables(facts)
    assert result is not None, "only aligned operands have a loop"
    lines = [
        f"{'    ' * depth}for {variable} in range({size}):"
        for depth, (variable, size) in enumerate(zip(variables, result.shape, strict=True))
    ]
    return "\n".join([*lines, "    " * len(lines) + loop_body(facts, variables, ", ")])


def new_axis_spelling(facts: BroadcastFacts) -> str:
    """The expression with every new axis written as a NumPy index: `a - b[None, :]`."""
    alignment = facts.alignment
    assert alignment is not None, "only aligned operands have one spelling"
    return _realign(facts, alignment).expression


# --- the explicit ops -----------------------------------------------------------------------------


def explicit_ops(facts: BroadcastFacts) -> tuple[str, ...]:
    """Statements that spell every broadcast out in `xarr.lax`, one per line."""
    alignment, result = facts.alignment, facts.result
    assert alignment is not None and result is not None, "only aligned operands have explicit ops"
    lines, arguments = [], []
    for i, operand in enumerate(facts.operands):
        if operand.shape == alignment.result:
            arguments.append(facts.terms[i])
            continue
        arguments.append(_temporary(facts, i, arguments))
        call = f"lax.broadcast_in_dim({facts.terms[i]}, {alignment.result}, {alignment.dimensions[i]})"
        lines.append(f"{arguments[-1]} = {call}")
    call = facts.operator.applied_explicitly(arguments, facts.same_dtype)
    return (*lines, call if facts.operator.is_statement else f"{result.name} = {call}")


def _temporary(facts: BroadcastFacts, operand: int, names_in_use: Sequence[str]) -> str:
    name = facts.names[operand]
    stem = name if name.isidentifier() else "xyzw"[operand] if operand < 4 else "x"
    used = {*names_in_use, *facts.names}
    return next(f"{stem}{n}" for n in count(1) if f"{stem}{n}" not in used)


def one_op(facts: BroadcastFacts) -> str | None:
    """The op in one expression, with `broadcast_dimensions`; None if it is not a binary op of `xarr.lax`.

    Where an axis is stretched, which `broadcasting="explicit"` refuses, with `broadcast_in_dim`, as jax.lax takes it.
    """
    alignment = facts.alignment
    if alignment is None:
        return None
    call = _binary_call(facts, alignment)
    return None if call is None or facts.result is None else f"{facts.result.name} = {call}"


def _binary_call(facts: BroadcastFacts, alignment: Alignment) -> str | None:
    if len(alignment.operands) != 2 or facts.operator.lax is None or not facts.same_dtype:
        return None
    lower = min((0, 1), key=lambda i: len(alignment.operands[i]))
    arguments = list(facts.terms)
    if any(map(alignment.stretched_axes, (0, 1))):
        arguments = [_broadcast_operand(facts, alignment, i) for i in (0, 1)]
    elif len(alignment.operands[lower]) not in (0, len(alignment.result)):
        arguments.append(f"broadcast_dimensions={alignment.dimensions[lower]}")
    return f"lax.{facts.operator.lax}({', '.join(arguments)})"


def _broadcast_operand(facts: BroadcastFacts, alignment: Alignment, operand: int) -> str:
    """The operand in the shape of the result; a scalar, which goes with every shape, as it is."""
    name, shape = facts.terms[operand], alignment.operands[operand]
    if shape in ((), alignment.result):
        return name
    return f"lax.broadcast_in_dim({name}, {alignment.result}, {alignment.dimensions[operand]})"


# --- StableHLO ------------------------------------------------------------------------------------

#: From functions of `xarr.lax` to StableHLO's ops of two operands that compute the same.
_STABLEHLO = {
    **{name: name for name in ("add", "atan2", "complex", "shift_right_arithmetic", "shift_right_logical")},
    **{"sub": "subtract", "mul": "multiply", "max": "maximum", "min": "minimum", "shift_left": "shift_left"},
    **{"div": "divide", "rem": "remainder", "pow": "power", "clamp": "clamp", "select": "select"},
    **{f"bitwise_{name}": name for name in ("and", "or", "xor")},
}
_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
_WIDTHS = {"complex64": "complex<f32>", "complex128": "complex<f64>", "pred": "i1", "bool": "i1"}


def stablehlo(facts: BroadcastFacts) -> str | None:
    """The function in StableHLO, each broadcast an op of its own; float64 where no element type is known.

    None where the operands are not aligned or must be promoted first.  What NumPy's op is several ops for stands as a
    comment: `xarr.lower` prints these.
    """
    alignment, result = facts.alignment, facts.result
    if alignment is None or result is None or not facts.same_dtype or facts.operator.template is not None:
        return None
    types = [_tensor_type(facts, i) for i in range(len(facts.operands))]
    wide = [_tensor(alignment.result, element) for _, element in types]
    names = [f"%{name}" if name.isidentifier() else f"%arg{i}" for i, name in enumerate(facts.names)]
    lines: list[str] = []
    arguments: list[str] = []
    for i, (type, _) in enumerate(types):
        if facts.shapes[i] == alignment.result:
            arguments.append(names[i])
            continue
        arguments.append(f"%{len(lines)}")
        dims = ", ".join(map(str, alignment.dimensions[i]))
        text = f"stablehlo.broadcast_in_dim {names[i]}, dims = [{dims}] : ({type}) -> {wide[i]}"
        lines.append(f"{arguments[-1]} = {text}")
    element = "i1" if facts.operator.is_comparison else types[-1][1]
    element = f"complex<{element}>" if facts.operator.name == "complex" else element
    out = _tensor(alignment.result, element)
    call = _stablehlo_call(facts, arguments, wide, out)
    last = f"%{len(lines)}"
    body = [*lines, f"{last} = {call}", f"return {last} : {out}"]
    if call is None:
        body = [
            *lines,
            f"// {facts.operator.name} is no single op: print(xarr.lower(f, a, b)) shows those it is made of",
        ]
    parameters = ", ".join(f"{name}: {type}" for name, (type, _) in zip(names, types, strict=True))
    return "\n".join([f"func.func @main({parameters}) -> {out} {{", *(f"  {line}" for line in body), "}"])


def _stablehlo_call(
    facts: BroadcastFacts, arguments: Sequence[str], types: Sequence[str], out: str
) -> str | None:
    """The op on operands of the same shape; None if it is several ops."""
    operator, listed = facts.operator, ", ".join(arguments)
    if len(arguments) != operator.arity:
        return None
    element = _element_type(facts.operands[-1].dtype)
    lax = operator.lax or _lax_of_type(operator.symbol, element)
    if lax in _COMPARISONS:
        order = (
            "FLOAT"
            if "f" in element
            else "SIGNED"
            if element.startswith("i") and element != "i1"
            else "UNSIGNED"
        )
        return f"stablehlo.compare {lax.upper()}, {listed}, {order} : ({', '.join(types)}) -> {out}"
    name = _STABLEHLO.get(lax or "")
    if name is None:
        return None
    if name == "complex":
        return f"stablehlo.complex {listed} : ({', '.join(types)}) -> {out}"
    typed = ", ".join(types[:2]) if name == "select" else out
    return f"stablehlo.{name} {listed} : {typed}"


def _lax_of_type(symbol: str | None, element: str) -> str | None:
    """The function for an operator of NumPy's that is one op for some element types."""
    if symbol in ("/", "**") and "f" in element:
        return "div" if symbol == "/" else "pow"
    if symbol == ">>" and "f" not in element:
        return "shift_right_logical" if element.startswith("u") else "shift_right_arithmetic"
    return None


def _tensor_type(facts: BroadcastFacts, operand: int) -> tuple[str, str]:
    """The type of an operand, and its element type."""
    is_condition = facts.operator.name == "where" and operand == 0
    element = "i1" if is_condition else _element_type(facts.operands[operand].dtype)
    return _tensor(facts.shapes[operand], element), element


def _tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join((*map(str, shape), element))}>"


def _element_type(dtype: str | None) -> str:
    """MLIR's name of an element type that XLA or NumPy names: `ui8` for u8, `i1` for pred, `f64` for None."""
    name = (dtype or "f64").replace("float", "f").replace("uint", "u").replace("int", "i")
    if name in _WIDTHS or name in ("c64", "c128"):
        return _WIDTHS.get(name) or _WIDTHS[f"complex{name[1:]}"]
    small = re.fullmatch(r"f(\d)_?(e.*)", name)
    if small:
        return f"f{small[1]}{small[2].upper()}"
    return f"ui{name[1:]}" if name[0] == "u" else f"i{name[1:]}" if name[0] in "si" else name


# --- what would work ------------------------------------------------------------------------------


def suggestions(facts: BroadcastFacts) -> tuple[tuple[Suggestion, ...], str]:
    """Every alignment that would work, else every transpose, up to a limit; and what is left out, if any."""
    fixes = tuple(_realign(facts, other) for other in islice(alignments(*facts.shapes), LISTED + 1))
    if len(facts.operands) == 2:
        small, big = sorted(facts.shapes, key=len)
        fixes = fixes or _transposes(facts)
        if len(small) < len(big) and len(fixes) > LISTED:
            return fixes[:LISTED], f"and {count_alignments(small, big) - LISTED} more"
    return fixes[:LISTED], "and others" if len(fixes) > LISTED else ""


def _transposes(facts: BroadcastFacts) -> tuple[Suggestion, ...]:
    a, b = facts.shapes
    first, second = facts.terms
    transposed = []
    for fix in fixes(a, b, names=facts.terms, limit=LISTED + 1):
        explicit = None
        if fix.permutation is not None and facts.operator.lax is not None and facts.same_dtype:
            turned = f"lax.transpose({second}, {fix.permutation})"
            moved = tuple(b[axis] for axis in fix.permutation)
            left, right = _stretch_axes(first, a, fix.result), _stretch_axes(turned, moved, fix.result)
            explicit = f"lax.{facts.operator.lax}({left}, {right})"
        expression = facts.operator.apply([first, fix.numpy])
        transposed.append(Suggestion(expression, explicit, _label_shape(facts, fix.result)))
    return tuple(transposed)


def _stretch_axes(term: str, shape: tuple[int, ...], result: tuple[int, ...]) -> str:
    """An operand of the rank of the result, in its shape."""
    if shape == result:
        return term
    return f"lax.broadcast_in_dim({term}, {result}, {tuple(range(len(result)))})"


def _realign(facts: BroadcastFacts, alignment: Alignment) -> Suggestion:
    rank = len(alignment.result)
    spelled = [
        name + new_axis_index(dimensions, rank)
        for name, dimensions in zip(facts.terms, alignment.dimensions, strict=True)
    ]
    explicit = _binary_call(facts, alignment)
    return Suggestion(facts.operator.apply(spelled), explicit, _label_shape(facts, alignment.result))


def _label_shape(facts: BroadcastFacts, shape: tuple[int, ...]) -> str:
    return Operand("", shape, facts.result_dtype).label


# --- what it costs, and what may not have been meant ----------------------------------------------


def reuse(facts: BroadcastFacts) -> str:
    """The number of times that each operand's elements are read."""
    alignment = facts.alignment
    assert alignment is not None, "only aligned operands are read"
    if prod(alignment.result) == 0:
        return "the result is empty: nothing is read"
    times = [alignment.reuse(i) for i in range(len(facts.operands))]
    often = [{1: "once", 2: "twice"}.get(n, f"{n:,} times") for n in times]
    reads = [f"of {name} {said}" for name, said in zip(facts.names, often, strict=True)]
    reads[0] = f"of {facts.names[0]} is read {often[0]}"
    return f"each element {', '.join(reads)}"


def memory(facts: BroadcastFacts) -> str:
    """Elements and, where the dtype is known, bytes of each operand and of the result."""
    assert facts.result is not None, "only aligned operands have a result"
    return list_memory((*facts.operands, facts.result))


def list_memory(operands: Iterable[Operand]) -> str:
    """Elements and, where the dtype is known, bytes of each operand."""
    return ", ".join(f"{each.name} {pluralize(each.size, 'element')}{bytes_of(each)}" for each in operands)


def bytes_of(operand: Operand) -> str:
    """Its bytes in parentheses; where the dtype is not known those of float64, if they are many."""
    if operand.bytes is not None:
        return f" ({human_bytes(operand.bytes)})"
    return f" ({human_bytes(8 * operand.size)} at float64)" if operand.size >= _MANY else ""


def warnings(facts: BroadcastFacts) -> tuple[Warn, ...]:
    """OUTER if the result is larger than every operand, AMBIGUOUS if another alignment fits too."""
    alignment = facts.alignment
    if alignment is None:
        return ()
    warnings = []
    if alignment.is_outer:
        warnings.append(_outer(facts, alignment))
    others = () if facts.is_explicit else ambiguous_alternatives(alignment)
    if others:
        known = f"at least {len(others) + 1}" if len(others) >= LISTED else str(len(others) + 1)
        line = f"{known} alignments fit; NumPy's rule takes the trailing axes. The others:"
        if len(others) == 1:
            line = "2 alignments fit; NumPy's rule takes the trailing axes. The other:"
        shown = tuple(_realign(facts, other) for other in others[:_SHOWN])
        more = "and others" if len(others) > _SHOWN else ""
        warnings.append(Warn("AMBIGUOUS", (line,), shown, more))
    return tuple(warnings)


def _outer(facts: BroadcastFacts, alignment: Alignment) -> Warn:
    assert facts.result is not None, "an alignment has a result"
    sizes = [prod(shape) for shape in facts.shapes]
    total = prod(alignment.result)
    size = bytes_of(facts.result) if total >= _MANY else ""
    lines = [
        f"the result is larger than every operand: {pluralize(total, 'element')}{size}, "
        f"the largest operand has {max(sizes):,}"
    ]
    squeezed = {tuple(size for size in shape if size != 1) for shape in facts.shapes}
    pairs: tuple[Suggestion, ...] = ()
    if len(squeezed) == 1 and len(facts.operands) == 2:
        lines.append(
            f"both operands have the same count of elements ({sizes[0]:,}); to pair them one to one:"
        )
        first = facts.operands[0]
        names = [facts.terms[0], f"{facts.terms[1]}.reshape({first.shape})"]
        pairs = (Suggestion(facts.operator.apply(names), None, _label_shape(facts, first.shape)),)
    return Warn("OUTER", tuple(lines), pairs)


# --- step by step ---------------------------------------------------------------------------------


def steps(facts: BroadcastFacts) -> tuple[AlignmentStep, ...]:
    """Align, insert new axes, stretch, compute; only the first if the operands do not align."""
    alignment = facts.alignment
    if alignment is None:
        return (
            AlignmentStep(
                "align", "the axes clash" if facts.has_table else facts.problem or "", facts.shapes
            ),
        )
    aligned = tuple(tuple(cell.size for cell in row) for row in facts.rows)
    inserted = tuple(tuple(1 if cell.size is None else cell.size for cell in row) for row in facts.rows)
    stretched = (alignment.result,) * len(facts.operands)
    return (
        AlignmentStep("align", "each axis of an operand meets an axis of the result", aligned),
        AlignmentStep("new axes", _axes_text(facts, "new"), inserted),
        AlignmentStep("stretch", _axes_text(facts, "stretched"), stretched),
        AlignmentStep("compute", loop_body(facts, loop_variables(facts)), (alignment.result,)),
    )


def _axes_text(facts: BroadcastFacts, kind: str) -> str:
    parts = []
    for name, row in zip(facts.names, facts.rows, strict=True):
        axes = [str(axis) for axis, cell in enumerate(row) if cell.kind == kind]
        if axes:
            parts.append(f"{name}: {'axis' if len(axes) == 1 else 'axes'} {list_words(axes)}")
    verb = "inserted with size 1" if kind == "new" else "of size 1 repeated"
    return f"{'; '.join(parts)} {verb}" if parts else "nothing to do"


def cut_text(text: str, width: int) -> str:
    """The text, cut to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"
