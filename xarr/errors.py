"""Every error and warning that xarr raises on purpose.

Each class also derives from the builtin that a NumPy user would catch, so `except ValueError` keeps
working.  Messages follow one pattern: the op as the user wrote it, the label of the violated
constraint where there is one, what was wanted, what was got, and a fix that works.
"""

import numpy as np


def counted(number: int, noun: str) -> str:
    """A number of things in a message: `1 element`, `2 elements`, `2 entries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


class XarrError(Exception):
    """Base of all xarr errors."""


class ShapeError(XarrError, ValueError):
    """Shapes or dimension numbers violate a labelled constraint of an op."""


class BroadcastError(ShapeError):
    """Shapes do not broadcast; the message lists every alignment that would work."""


class AxisError(ShapeError, IndexError):
    """An axis lies outside the rank of its array, or is named twice."""


class DTypeError(XarrError, TypeError):
    """An element type is not accepted, or two element types do not agree."""


class InputError(XarrError, TypeError):
    """A Python object cannot become an array (string, object array ...)."""


class RaggedError(InputError, ValueError):
    """A nested list whose parts differ in length cannot become an array."""


class ValueRangeError(XarrError, ValueError, OverflowError):
    """A value is out of the range that an argument or a dtype allows."""


class ConfigError(XarrError, ValueError):
    """An unknown configuration name or value."""


class IndexingError(XarrError, IndexError):
    """An index is out of bounds or of a kind that cannot index an array."""


class TracedValueError(XarrError, TypeError):
    """The value of a traced array was asked for; it has none until the graph runs."""


class EndlessCallError(XarrError, RecursionError):
    """A jitted function calls itself, in what is recorded, without coming to an end."""


class DonationError(XarrError, RuntimeError):
    """The value of an Array was asked for that a jitted function was given for good."""


class BackendError(XarrError, RuntimeError):
    """A backend is unknown, unavailable, mixed with another, or lacks an op."""


class EvaluationError(XarrError, RuntimeError):
    """A backend failed while running a graph; names the source line that built the node."""


class LinAlgError(XarrError, np.linalg.LinAlgError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


class MatrixShapeError(ShapeError, LinAlgError):
    """Shapes of which `xarr.linalg` makes nothing, for which NumPy raises its LinAlgError."""


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
    """The result of `x.at[…].set(…)` was dropped by the statement that made it, or `x[i][j] = v` wrote to x[i] only."""


class RecompilationWarning(UserWarning):
    """A jitted function was compiled more often than `config.jit_warn_compilations`."""


class UnknownVariableWarning(UserWarning):
    """An environment variable begins with XARR_, and nothing reads it: most likely a misspelled name."""
