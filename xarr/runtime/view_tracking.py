"""Parts: Arrays that in NumPy would be views of another one, and the warning for writing to them.

`x[0]`, `x.T` and `x.reshape(-1)` are values of their own here, so that `x[0][1] = 5` leaves x as it is, where NumPy
would change it.  The handle of such an Array remembers the Array that it was made of, weakly, and how.  Whatever
writes to it warns as long as that Array is alive; after that it is a part no more.

Whether NumPy would have copied, as `x.T.reshape(-1)` does, is asked of NumPy itself and only when something is
written: the steps are repeated on a view without memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from enum import Enum
from inspect import CO_OPTIMIZED
from sys import getrefcount
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref

import numpy as np

from xarr.errors import PartUpdateWarning
from xarr.ir.source import Source, user_frame

if TYPE_CHECKING:
    from xarr.runtime.handles import Handle


class PartStep(Enum):
    """A way to make a part of another Array; beside it stands the argument of the step."""

    INDEX = "x[index]"
    TRANSPOSE = "x.transpose(order)"
    RESHAPE = "x.reshape(shape), or (shape, order)"
    FLIP = "flip(x, axes)"
    BROADCAST = "broadcast_to(x, shape)"
    DIAGONAL = "x.diagonal(offset, axis1, axis2)"
    REAL = "x.real, of an x that is real or not"
    IMAG = "x.imag"
    EINSUM = "einsum(subscripts, x), which adds nothing up"
    VIEW = "x.view(dtype)"


# Names of their own, since looking up a member of an enumeration takes as long as the rest of `mark`.
INDEX: Final = PartStep.INDEX
TRANSPOSE: Final = PartStep.TRANSPOSE
RESHAPE: Final = PartStep.RESHAPE
FLIP: Final = PartStep.FLIP
BROADCAST: Final = PartStep.BROADCAST
DIAGONAL: Final = PartStep.DIAGONAL
REAL: Final = PartStep.REAL
IMAG: Final = PartStep.IMAG
EINSUM: Final = PartStep.EINSUM
VIEW: Final = PartStep.VIEW

#: What a part was made of, how, and what that was a part of itself.
Part = tuple[Callable[[], "Handle | None"], PartStep, Any, Any]
#: Steps from an Array to a part of it.
PartSteps = tuple[tuple[PartStep, Any], ...]
#: What is written, for messages: a method of `x.at[…]`, an index or ALL, a value, or its text with "{part}" in it.
Write = tuple[str, Any, Any]
ALL: Final = ...
_LONGEST_VALUE: Final = 24
#: Steps from an Array to a part of it that are remembered: more are no spelling that anybody would write.
_MOST_STEPS: Final = 32


H = TypeVar("H", bound="Handle")


def mark(array: Handle, part: H, step: PartStep, argument: Any) -> H:
    """`part`, which a function of NumPy's made of `array` by `step` and that has no other reference yet."""
    outer = getattr(array, "_part", None)
    part._part = (ref(array), step, argument, None if outer is None else live_part(outer))
    return part


def mark_steps(array: Handle, part: H, steps: PartSteps) -> H:
    """`part`, as `mark` gives it of `array`, after several steps between which no Array is left."""
    outer = getattr(array, "_part", None)
    one: Part | None = None if outer is None else live_part(outer)
    reference: Callable[[], Handle | None] = ref(array)
    for step, argument in steps:
        one, reference = (reference, step, argument, one), _dead_reference
    part._part = one
    return part


def lineage(array: Handle) -> tuple[PartSteps, Handle | None]:
    """The steps from the innermost Array that is alive, and that; no Array for one that is no part."""
    steps: list[tuple[PartStep, Any]] = []
    one = getattr(array, "_part", None)
    while one is not None:
        reference, step, argument, one = one
        steps.append((step, argument))
        whole = reference()
        if whole is not None:
            return tuple(steps[::-1]), whole
    return (), None


def live_part(part: Part) -> Part | None:
    """`part` up to the outermost Array that is alive; None if none is, or if that is too many steps away.

    Else `x = x[1:]` in a loop would remember every x that there was.
    """
    steps: list[Part] = []
    one: Part | None = part
    while one is not None:
        steps.append(one)
        one = one[3]
    if len(steps) >= _MOST_STEPS:
        return None
    while steps and steps[-1][0]() is None:
        steps.pop()
    if not steps or steps[-1][3] is None:
        return part if steps else None
    live: Part | None = None
    for reference, step, argument, _ in reversed(steps):
        live = (reference, step, argument, live)
    return live


def reshape_part(part: Part, shape: tuple[int, ...]) -> Part | None:
    """The part that an Array is which was `part` until its own shape was set; None if it is one no more."""
    live = live_part(part)
    return None if live is None else (_dead_reference, RESHAPE, (shape, "C"), live)


def _dead_reference() -> None:
    """A weak reference to an Array that no longer exists."""


# --- looking at parts -----------------------------------------------------------------------------------------


def _lineage(part: Part) -> tuple[Handle, list[tuple[PartStep, Any]]] | None:
    """The outermost Array still alive that this is a part of, and the steps from it; None if there is none."""
    whole: Handle | None = None
    steps: list[tuple[PartStep, Any]] = []
    known: list[tuple[PartStep, Any]] = []
    one: Part | None = part
    while one is not None:
        reference, step, argument, one = one
        known.append((step, argument))
        alive = reference()
        if alive is not None:
            whole, steps = alive, known[::-1]
    return None if whole is None else (whole, steps)


_REPLAYS: Final[dict[PartStep, Callable[[Any, Any], Any]]] = {
    TRANSPOSE: np.transpose,
    FLIP: np.flip,
    BROADCAST: np.broadcast_to,
    DIAGONAL: lambda view, offsets: np.diagonal(view, *offsets),
    REAL: lambda view, _: view.real,
    IMAG: lambda view, _: view.imag,
    EINSUM: lambda view, subscripts: np.einsum(subscripts, view),
    VIEW: lambda view, dtype: view.view(dtype),
    RESHAPE: lambda view, shape: view.reshape(shape[0], order=shape[1], copy=False),
}


def _views(whole: Handle, steps: list[tuple[PartStep, Any]]) -> list[np.ndarray[Any, Any]] | None:
    """NumPy's views after each step, the first of all of `whole`, none of which may be read; None for no view."""
    shape, dtype = whole._node.shape, whole._node.dtype
    memory = np.empty(1, dtype)
    strides = np.cumprod([memory.itemsize, *[max(size, 1) for size in shape[:0:-1]]])[::-1] if shape else ()
    views = [np.lib.stride_tricks.as_strided(memory, shape, strides)]
    for step, argument in steps:
        view = views[-1]
        if step is INDEX:
            # With an ellipsis no element is read.
            index = argument if isinstance(argument, tuple) else (argument,)
            view = view[index if any(item is ... for item in index) else (*index, ...)]
        else:
            try:
                view = _REPLAYS[step](view, argument)
            except ValueError:  # a shape that needs a copy, or bytes that do not lie side by side
                return None
        views.append(view)
    return views


# --- warning --------------------------------------------------------------------------------------------------

#: Texts by the line that wrote, where the part was made, and how but for the index: a loop over x[i] has one, which
#: Python shows once.
_texts: Final[dict[tuple[Source, tuple[CodeType, Any] | None, tuple[tuple[PartStep, Any], ...]], str]] = {}
_MOST_TEXTS: Final = 1024
#: The frame, the variable here, and the argument of getrefcount.
_REFERENCES_TO_SHOWN: Final = 3


def warn_of_write(handle: Handle, part: Part, write: Write | None) -> None:
    """PartUpdateWarning, at the user's line, for `write` to a handle that is a `part` of an Array that is alive."""
    lineage = _lineage(part)
    frame = user_frame()
    if lineage is None or frame is None or not handle._node.tensor_type.size:
        return
    views = _views(*lineage)
    if views is None:
        return
    write_source = Source(frame.f_code, frame.f_lasti)
    source = handle._node.source
    # By its position: the offset of a call that CPython has specialised lies behind that of the first one (3.12).
    made = None if source is None else (source.code, source.position)
    key = write_source, made, tuple((step, step is INDEX or value) for step, value in lineage[1])
    message = _texts.get(key)
    if message is None:
        text = _message(handle, lineage, write or _SET, views[-1].flags.writeable, frame)
        if len(_texts) >= _MOST_TEXTS:
            _texts.clear()
        message = _texts[key] = f"{text}\n{write_source}"
    warnings.warn_explicit(
        message,
        PartUpdateWarning,
        write_source.filename,
        write_source.line,
        frame.f_globals.get("__name__") or write_source.filename,
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def line_of(handle: Handle) -> Any:
    """The line that made a value without a node, of constants alone too."""
    location = handle._location
    return getattr(location, "location", location)


def is_put_back(handle: Handle) -> bool:
    """Whether `handle` was made by the left side of the statement that now changes it in place.

    `x[0] += 1` and `x.real += 1` are that: Python writes the result to where it came from, which changes x.
    """
    frame, node = user_frame(), handle._shown
    made = line_of(handle) if node is None else node._location
    if node is not None and node is _node_of_outer(handle):
        return True  # `x.real` of a real x, which shows what x shows: nothing tells where it was made.
    if frame is None or not made or made[0] is not frame.f_code or made[1] >= frame.f_lasti:
        return False
    key = id(frame.f_code), made[1], frame.f_lasti
    known = _statements.get(key)
    if known is None or known[0] is not frame.f_code:
        is_same = Source(*made).start == Source(frame.f_code, frame.f_lasti).start
        if len(_statements) >= _MOST_TEXTS:
            _statements.clear()
        known = _statements[key] = frame.f_code, is_same
    return known[1]


#: By the code, by its identity, and two offsets in it: whether expression or statement begin alike there.  Without
#: columns all of a line is one.
_statements: Final[dict[tuple[int, int, int], tuple[CodeType, bool]]] = {}


def _node_of_outer(handle: Handle) -> object:
    part = handle._part
    outer = None if part is None else part[0]()
    return None if outer is None else outer._shown


def refusal(name: str, out: Handle, called: str = "") -> str | None:
    """Text of the error for `out=` of a part of an Array that is alive, with a rewrite; None for any other Array.

    called: the expression of the function, which is `xarr.{name}` if there is none.
    """
    part = getattr(out, "_part", None)
    lineage = None if part is None else _lineage(part)
    frame = user_frame()
    if lineage is None or frame is None or not _views(*lineage):
        return None
    whole = _name(lineage[0], frame) or "x"
    call = f"{called or f'xarr.{name}'}(…)"
    written = _rewrite(whole, lineage[1], ("set", ALL, call))
    instead = f"{whole} = {written}" if written else f"{whole} = … of {call}"
    return (
        f"{name}: out= is {_spell(whole, lineage[1])}, a part of {whole}: in NumPy {whole} would change too; "
        f"write {instead}, or out= an array of its own, {_spell(whole, lineage[1])}.copy()"
    )


_SET: Final[Write] = ("set", ALL, None)


def _message(
    handle: Handle,
    lineage: tuple[Handle, list[tuple[PartStep, Any]]],
    write: Write,
    is_written: bool,
    frame: FrameType,
) -> str:
    whole, steps = _name(lineage[0], frame) or "x", lineage[1]
    spelled, name = _spell(whole, steps), _name(handle, frame)
    shown = spelled if name is None else f"{name}, that is {spelled},"
    copied = f"{spelled}.copy()" if name is None else f"{name} = {spelled}.copy()"
    if not is_written:
        return (
            f"{shown} is a part of {whole}, which NumPy makes read-only; here this changes the part and not "
            f"{whole}: write {copied} for an array of its own"
        )
    rewrite = _rewrite(whole, steps, write)
    return (
        f"{shown} is a part of {whole}: NumPy would change {whole} too, xarr changes the part alone; write "
        f"{whole} = {rewrite} to change {whole}, or {copied} for an array of its own"
    )


def _name(handle: Handle, frame: FrameType) -> str | None:
    """The variable, or attribute of self, that is `handle` in the user's function."""
    variables = _variables(frame)
    own = getattr(variables.get("self"), "__dict__", {})
    for prefix, scope in (("", variables), ("self.", own), ("", frame.f_globals)):
        for name, value in list(scope.items()):
            if value is handle and not name.startswith("_"):
                return f"{prefix}{name}"
    return None


def _variables(frame: FrameType) -> dict[str, Any]:
    """The local variables of a frame.

    Before Python 3.13 a function's frame keeps the dict that it shows them by, and with it what they were: Arrays that
    the function has deleted since would live on.  It is emptied, unless another holder has it from `locals()`.
    """
    shown = frame.f_locals
    names = dict(shown)
    is_copy = sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED
    if is_copy and getrefcount(shown) <= _REFERENCES_TO_SHOWN:
        shown.clear()
    return names


# --- spelling -------------------------------------------------------------------------------------------------


def _spell(text: str, steps: list[tuple[PartStep, Any]]) -> str:
    """The expression for what the steps make of `text`."""
    for step, argument in steps:
        text = _SPELLINGS[step](text, argument)
    return text


def _index(index: Any) -> str:
    items = index if isinstance(index, tuple) else (index,)
    return ", ".join(map(_item, items)) or "()"


def _item(item: Any) -> str:
    if isinstance(item, slice):
        first, last = ("" if end is None else str(end) for end in (item.start, item.stop))
        return f"{first}:{last}" if item.step is None else f"{first}:{last}:{item.step}"
    if item is ...:
        return "..."
    return str(item) if item is None or isinstance(item, int | np.integer) else "i"


def _spell_transpose(text: str, order: Sequence[int]) -> str:
    is_reversed = list(order) == [*range(len(order))][::-1]
    return f"{text}.T" if is_reversed else f"{text}.transpose({', '.join(map(str, order))})"


def _spell_reshape(text: str, argument: tuple[tuple[int, ...], str]) -> str:
    shape, order = argument
    sizes = "-1" if len(shape) == 1 else ", ".join(map(str, shape)) or "()"
    return f"{text}.reshape({sizes}{_order(order)})"


def _order(order: str) -> str:
    return ', order="F"' if order == "F" else ""


_SPELLINGS: Final[dict[PartStep, Callable[[str, Any], str]]] = {
    INDEX: lambda text, index: f"{text}[{_index(index)}]",
    TRANSPOSE: _spell_transpose,
    RESHAPE: _spell_reshape,
    FLIP: lambda text, axes: f"xarr.flip({text}, {axes})",
    BROADCAST: lambda text, shape: f"xarr.broadcast_to({text}, {shape})",
    DIAGONAL: lambda text, offsets: f"{text}.diagonal({', '.join(map(str, offsets))})",
    REAL: lambda text, _: f"{text}.real",
    IMAG: lambda text, _: f"{text}.imag",
    EINSUM: lambda text, subscripts: f"xarr.einsum({subscripts!r}, {text})",
    VIEW: lambda text, dtype: f'{text}.view("{dtype.name}")',
}
#: The whole `text` with the new value of what the step makes of it; not of BROADCAST and DIAGONAL, which are never
#: written to.
_INVERSES: Final[dict[PartStep, Callable[[str, Any, str], str]]] = {
    INDEX: lambda text, index, new: f"{text}.at[{_index(index)}].set({new})",
    TRANSPOSE: lambda text, order, new: _spell_transpose(new, tuple(np.argsort(order).tolist())),
    RESHAPE: lambda text, argument, new: f"{new}.reshape({text}.shape{_order(argument[1])})",
    FLIP: lambda text, axes, new: f"xarr.flip({new}, {axes})",
    REAL: lambda text, is_all, new: new if is_all else f"{new} + 1j * {text}.imag",
    IMAG: lambda text, _, new: f"{text}.real + 1j * {new}",
    EINSUM: lambda text, subscripts, new: (
        f"{text}.reshape(-1).at[xarr.einsum({subscripts!r}, xarr.arange({text}.size).reshape({text}.shape))]"
        f".set({new}).reshape({text}.shape)"
    ),
    VIEW: lambda text, _, new: f"{new}.view({text}.dtype)",
}
_VALUES: Final = (bool, int, float, complex, np.generic)


def _rewrite(whole: str, steps: list[tuple[PartStep, Any]], write: Write) -> str | None:
    """The new value of `whole` for a write to what the steps make of it; None where NumPy could not."""
    if any(step not in _INVERSES for step, _ in steps):
        return None
    method, index, value = write
    part = _spell(whole, steps)
    if isinstance(value, str):
        value = value.replace("{part}", part)
    else:
        value = str(value) if isinstance(value, _VALUES) and len(str(value)) <= _LONGEST_VALUE else "v"
    above = list(steps)
    if above[-1][0] is INDEX and (index is ALL or _is_of_ints(above[-1][1])):
        _, outer = above.pop()
        spelled = _index(outer) if index is ALL else f"{_index(outer)}, {_index(index)}"
    else:
        spelled = _index(index)
    new = f"{_spell(whole, above)}.at[{spelled}].{method}({value})"
    while above:
        step, argument = above.pop()
        new = _INVERSES[step](_spell(whole, above), argument, new)
    return new


def _is_of_ints(index: Any) -> bool:
    return all(
        isinstance(item, int | np.integer) for item in (index if isinstance(index, tuple) else (index,))
    )
