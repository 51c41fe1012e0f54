"""Every error and warning that xarr raises on purpose.

Each class also derives from the builtin that a NumPy user would catch, so `except ValueError` keeps
working.  Messages follow one pattern: the op as the user wrote it, the label of the violated
constraint where there is one, what was wanted, what was got, and a fix that works.
"""

import importlib
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from xarr.numpy_errors import (
        AxisError as AxisError,
        LinAlgError as LinAlgError,
        MatrixShapeError as MatrixShapeError,
    )

#: The module of the classes that derive from NumPy's, and these: loaded when first asked for, so that shapes can be
#: explained without NumPy.
_MODULE_WITH_NUMPY: Final = "xarr.numpy_errors"
_WITH_NUMPY: Final = ("AxisError", "LinAlgError", "MatrixShapeError")


def pluralize(number: int, noun: str) -> str:
    """A number of things in a message: `1 element`, `2,000 elements`, `2 entries`, `3 arrays`, `3 axes`."""
    plural = f"{noun}s"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        plural = f"{noun[:-1]}ies"
    elif noun.endswith("is"):
        plural = f"{noun[:-2]}es"
    return f"{number:,} {noun if number == 1 else plural}"


#: The functions that users call, as texts of errors begin with them, such as `linalg.norm` and `flip`.
_functions: Final[set[str]] = set()


def register_function(name: str) -> str:
    """`name`, which texts of errors begin with from now on as that of a function."""
    _functions.add(name)
    return name


def _without_function(text: str) -> str:
    """The text of an error without the function that it begins with, as in `full: wanted more`.

    What else stands before a colon stays, such as an argument.
    """
    name, colon, rest = text.partition(": ")
    return rest if colon and name in _functions else text


class XarrError(Exception):
    """Base of all xarr errors; the text names the function that was called."""

    #: How IPython shows the error; `xarr.base.tracebacks` says it.
    _render_traceback_: ClassVar[Any]

    def name_function(self, name: str) -> None:
        """Begin the text with the function `name` that the user called, unless it names that function already.

        Checks of shapes, axes and dtypes serve many functions, and functions call one another: the last name counts,
        that of the outermost function, "" for an operator.  It replaces the name of a function that the text has.
        """
        text = vars(self).setdefault("_text", self.args[0] if self.args else None)
        # An explained broadcast begins with its operation.
        if isinstance(text, str) and not hasattr(self, "explanation"):
            last = re.escape(name.rpartition(".")[2])
            is_named = not name or re.match(rf"(?:[^:]* of )?(?:\w+\.)?{last}\b", text)
            self.args = (text if is_named else f"{name}: {_without_function(text)}", *self.args[1:])


class ShapeError(XarrError, ValueError):
    """Shapes or dimension numbers violate a labelled constraint of an op."""


class BroadcastError(ShapeError):
    """Shapes do not broadcast; the message lists every alignment that would work."""


class DTypeError(XarrError, TypeError):
    """An element type is not accepted, or two element types do not agree."""


class InputError(XarrError, TypeError):
    """A Python object cannot become an array (string, object array ...)."""


class ArgumentError(InputError, ValueError):
    """An argument is of a kind or spelling that the function does not take; NumPy says TypeError or ValueError."""


class RaggedError(ArgumentError):
    """A nested list whose parts differ in length cannot become an array."""


class ValueRangeError(XarrError, ValueError, OverflowError):
    """A value is out of the range that an argument or a dtype allows."""


class SizeError(ShapeError, InputError):
    """A size is no integer."""


class HugeSizeError(ShapeError, ValueRangeError):
    """A size or an axis is beyond 2**63."""


class DivisionByZeroError(ValueRangeError, ZeroDivisionError):
    """A step, a distance or a number of parts is 0, by which would be divided."""


class ConfigError(XarrError, ValueError):
    """An unknown configuration name or value."""


class UnknownOptionError(ConfigError, AttributeError):
    """The configuration has no such option, so that `hasattr` is False."""


class IndexingError(XarrError, IndexError):
    """An index is out of bounds or of a kind that cannot index an array."""


class FlatIndexError(IndexingError, ValueError):
    """An index into a shape, and into no array, is out of bounds, which NumPy calls a ValueError."""


class SliceStepError(IndexingError, ValueError):
    """A slice with the step 0."""


class IndexTypeError(IndexingError, TypeError):
    """Something is of no type that indexes: NumPy says IndexError, and for slices and in functions TypeError."""


class TracedValueError(XarrError, TypeError):
    """The value of a traced array was asked for; it has none until the graph runs."""


class EndlessCallError(XarrError, RecursionError):
    """A jitted function calls itself, in what is recorded, without coming to an end."""


class DonationError(XarrError, RuntimeError):
    """The value of an Array was asked for that a jitted function was given for good."""


class BackendError(XarrError, RuntimeError):
    """A backend is unknown, unavailable, mixed with another, or lacks an op."""


class UnknownBackendError(BackendError, ValueError):
    """There is no backend, and no device, of that name."""


class EvaluationError(XarrError, RuntimeError):
    """A backend failed while running a graph; names the source line that built the node."""


class CommunicationError(EvaluationError):
    """Members of a distributed program cannot go on: one failed, or they are not in the same operation."""


class DeadlockError(CommunicationError):
    """No replica can go on, or one waits for another that has left; the text is a table of who waits where."""


class CollectiveMismatchError(CommunicationError):
    """Replicas meet in different operations, or in one with other types, attributes or groups."""


class CollectiveTimeoutError(CommunicationError, TimeoutError):
    """A collective has waited for `config.collective_timeout` seconds, and some replica runs elsewhere."""


class ReplicaError(CommunicationError):
    """Another replica failed, so that this one cannot go on."""


class TooLargeError(EvaluationError, MemoryError, ValueError):
    """An array is larger than memory or than a backend can count; names the source line that built it."""


class NotANumberError(XarrError, FloatingPointError):
    """Under `config.debug_nans`, an op made a NaN of numbers."""


class NumberOverflowError(XarrError, FloatingPointError):
    """Under `config.debug_overflow`, an op made an infinity of finite numbers."""


class ParseError(XarrError, ValueError):
    """Text could not be parsed; says where and what was expected."""


class BroadcastWarning(UserWarning):
    """An implicit broadcast under `config.broadcasting = "warn"`."""


class OuterBroadcastWarning(BroadcastWarning):
    """The result of an implicit broadcast is larger than every operand."""


class AmbiguousBroadcastWarning(BroadcastWarning):
    """More than one alignment fits; NumPy silently took the trailing one."""


class DroppedUpdateWarning(UserWarning):
    """Under `config.debug`, the result of `x.at[…].set(…)` was dropped by the statement that made it."""


class PartUpdateWarning(DroppedUpdateWarning):
    """Something was written to a part of an Array, such as x[0] or x.T, where NumPy would change that Array too."""


class ElementLoopWarning(UserWarning):
    """A line has read or written 10,000 single elements, each of which is an operation of its own."""


class RecompilationWarning(UserWarning):
    """A jitted function was compiled more often than `config.jit_warn_compilations`."""


class UnknownVariableWarning(UserWarning):
    """An environment variable begins with XARR_, and nothing reads it: most likely a misspelled name."""


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        if name not in _WITH_NUMPY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(importlib.import_module(_MODULE_WITH_NUMPY), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WITH_NUMPY})
