"""Errors as they leave xarr: with the name of the function that was called, and without xarr's own frames.

What users call is a boundary: it lets an error go by way of `shorten`, which costs nothing as long as there is none.
There the error is told the function's name, which the checks below do not know, and its traceback loses xarr's frames,
so that the last line shown is the user's.  A plain function becomes a boundary by the decorator `names_errors`.
Notebooks ask an error itself how it is shown (`_render_traceback_`): an explained broadcast comes as a picture first.
`config.traceback = "full"` keeps every frame.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from xarr.base.configuration import current as config
from xarr.errors import XarrError, register_function

P = ParamSpec("P")
R = TypeVar("R")

#: Modules of the standard library that call back what they were given.
_GLUE: Final = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("contextlib.py", "functools.py")
)
_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Namespaces whose functions users call by a name with a dot.
_NAMESPACES: Final = frozenset({"emath", "fft", "linalg", "random"})
#: What users call, by its code: the name as texts of errors begin with it, of the variables of the call.
_boundaries: Final[dict[CodeType, Callable[[Mapping[str, Any]], str]]] = {}
#: Names of files that xarr writes itself and never saves.
_WRITTEN: Final = ("<xarr ", "<explicit program>")


def shorten(error: BaseException, name: str | None = None) -> None:
    """Take xarr's frames out of the traceback of `error` so far, and of the errors that caused it.

    For the function that was called, before it raises `error` again: a bare `raise` adds no frame, so that the last
    line shown is the user's.  The user's frames stay, those of a function that xarr has called too.
    name: the function as the text of the error shall begin, "" for an operator.  An error that went through a
    function of the user's, or came from a backend, keeps its text.
    """
    if isinstance(error, XarrError) and not vars(error).get("_is_final"):
        if not _is_from_here(error.__traceback__):
            keep_text(error)
        elif name is not None:
            error.name_function(name)
    if config.traceback == "short":
        for each in _chain(error):
            each.__traceback__ = without_own_frames(each.__traceback__)


def keep_text(error: XarrError) -> None:
    """Let no function that the error goes through begin its text: what has failed was called elsewhere."""
    vars(error)["_is_final"] = True


def _is_from_here(trace: TracebackType | None) -> bool:
    """Whether all frames of a traceback are those of functions in the package xarr."""
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            return False
        trace = trace.tb_next
    return True


def names_errors(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for users: an error of xarr's that leaves it begins with its name."""
    name = name_in_errors(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except XarrError as error:
            shorten(error, name)
            raise

    return mark_boundary(call)


def mark_boundary(
    function: Callable[P, R],
    name_of: Callable[[Mapping[str, Any]], str] = lambda variables: variables["name"],
) -> Callable[P, R]:
    """`function`, which `called_function` finds where the program of the user's is in a call of it.

    name_of: the name of the variables that it sees, by default its variable `name`.
    """
    _boundaries[function.__code__] = name_of
    return function


def called_function() -> str:
    """The function that the user's program is in a call of, as errors would name it; "" for an operator, or none."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        name_of = _boundaries.get(frame.f_code)
        if name_of is not None:
            name = name_of(frame.f_locals)
        frame = frame.f_back
    return name


def name_in_errors(function: Callable[..., Any]) -> str:
    """A function of a namespace of xarr's as its users write it, such as `linalg.norm` or `flip`."""
    namespace, name = function.__module__.split(".")[1], function.__name__
    register_function(name)  # as which functions of one namespace may know one another
    return register_function(f"{namespace}.{name}" if namespace in _NAMESPACES else name)


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without xarr's frames, those of its backends, and of what these have called."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    kept, inside = [], False
    for entry in entries:
        inside = _is_own(entry.tb_frame) or (inside and entry.tb_frame.f_code.co_filename in _GLUE)
        if not inside:
            kept.append(entry)
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _is_own(frame: FrameType) -> bool:
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if root == "xarr" or frame.f_code.co_filename.startswith(_WRITTEN):
        return True
    return root.startswith("xarr_") and hasattr(sys.modules.get(root), "Backend")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error of xarr's and what led to it, as far as Python shows that, each once."""
    seen: set[int] = set()
    while isinstance(error, XarrError) and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# --- notebooks ----------------------------------------------------------------------------------------


def render(error: XarrError) -> list[str]:
    """The lines that IPython shows for an error; a picture goes before them where there is a page to show it."""
    short = config.traceback == "short"
    trace = without_own_frames(error.__traceback__) if short else error.__traceback__
    shell = _shell()
    if shell is None:
        return traceback.format_exception(type(error), error, trace)
    _publish_picture(error, shell)
    if short:
        shorten(error)
    tb = shell.InteractiveTB
    lines: list[str] = tb.structured_traceback(type(error), error, trace, tb_offset=tb.tb_offset)
    return lines


def _publish_picture(error: XarrError, shell: Any) -> None:
    """Show the explanation of an error as a page does, once for a cell: IPython asks for the lines twice."""
    explanation, cell = getattr(error, "explanation", None), shell.execution_count
    # A terminal has no kernel, and no page.
    if explanation is None or not hasattr(shell, "kernel") or vars(error).get("_shown_in") == cell:
        return
    vars(error)["_shown_in"] = cell
    shell.display_pub.publish({"text/html": explanation.html(), "text/plain": explanation.text()})


def _shell() -> Any:
    """The IPython that runs this program, or None: who runs one has imported it."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


XarrError._render_traceback_ = render
