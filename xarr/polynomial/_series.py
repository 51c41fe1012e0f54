"""NumPy's series and its functions of their coefficients, which compute on the host, with Arrays in and out.

A series is evaluated at an Array by operations of xarr, so that `p(x)` works in traced functions too.  All else needs
the values of its arguments, which are computed for it, and is a TracedValueError where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ClassVar, Final

import numpy as np
from numpy.polynomial import (
    Chebyshev as _Chebyshev,
    Hermite as _Hermite,
    HermiteE as _HermiteE,
    Laguerre as _Laguerre,
    Legendre as _Legendre,
    Polynomial as _Polynomial,
)
from numpy.polynomial.chebyshev import chebval
from numpy.polynomial.hermite import hermval
from numpy.polynomial.hermite_e import hermeval
from numpy.polynomial.laguerre import lagval
from numpy.polynomial.legendre import legval
from numpy.polynomial.polynomial import polyval

from xarr.base.absent_names import missing
from xarr.calls.concrete_values import look_at
from xarr.ir.device import Device
from xarr.numpy_api.creation.arrays import asarray
from xarr.numpy_api.polynomials.arithmetic import polyval as evaluated
from xarr.runtime.handles import Handle, common_device


def _on_host(name: str, value: Any) -> Any:
    """An argument as NumPy takes it."""
    if isinstance(value, Handle):
        return look_at(name, "values", value, "evaluate a polynomial there as p(x), or by xarr.polyval")
    if isinstance(value, Series):
        return value._host
    if isinstance(value, type) and issubclass(value, Series):
        return value._kind
    if isinstance(value, list | tuple):
        return type(value)([_on_host(name, each) for each in value])
    return value


def _from_host(value: Any, device: Device | None = None) -> Any:
    """A result of NumPy's with Arrays for its arrays and numbers, and these classes for its own.

    device: that of the Arrays, by default the default one.
    """
    if isinstance(value, np.ndarray | np.inexact | np.integer):
        return asarray(value, device=device)
    if type(value) in _CLASSES:
        return _CLASSES[type(value)]._wrap(value)
    if isinstance(value, list | tuple):
        return type(value)([_from_host(each, device) for each in value])
    return value


def with_arrays(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of NumPy's, called `name` in errors, with Arrays in and Arrays out, on their backend.

    Raises as NumPy's, TracedValueError for an Array without a value, BackendError for Arrays of two backends.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        device = common_device((*args, *options.values()))
        on_host = {key: _on_host(name, value) for key, value in options.items()}
        return _from_host(function(*[_on_host(name, each) for each in args], **on_host), device)

    return call


class Series:
    """A polynomial as coefficients of a family, with a domain that is mapped to its window, as in NumPy.

    coef: coefficients, that of degree 0 first.  `p(x)` are the values at x, by operations of xarr; every method and
    operator of NumPy's class is there, computes on the host, and gives Arrays and series of this class.
    Source: NumPy, `numpy.polynomial`.
    """

    __slots__ = ("_host",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    _kind: ClassVar[Any]
    _value: ClassVar[Callable[..., Any]]

    def __init__(self, coef: Any, domain: Any = None, window: Any = None, symbol: str = "x") -> None:
        name = type(self).__name__
        self._host = self._kind(*[_on_host(name, each) for each in (coef, domain, window)], symbol)

    @classmethod
    def _wrap(cls, host: Any) -> Any:
        instance = cls.__new__(cls)
        instance._host = host
        return instance

    def __call__(self, x: Any) -> Any:
        """The values of the series at x, of its shape."""
        if not isinstance(x, Handle):
            return _from_host(self._host(_on_host("p(x)", x)))
        offset, scale = self._host.mapparms()
        return type(self)._value(offset + scale * x, self._host.coef)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        member = getattr(self._host, name)
        return (
            with_arrays(f"{type(self).__name__}.{name}", member) if callable(member) else _from_host(member)
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._host) if not name.startswith("_"))})

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coef)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._wrap, (self._host,)

    def __str__(self) -> str:
        return str(self._host)

    def __format__(self, spec: str) -> str:
        return format(self._host, spec)

    def __repr__(self) -> str:
        return repr(self._host)

    def __neg__(self) -> Any:
        return self._wrap(-self._host)

    def __pos__(self) -> Any:
        return self


def _operator(name: str) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        method = getattr(self._host, name, None)
        if method is None:  # a poly1d has no remainder
            return NotImplemented
        result = method(_on_host(f"{type(self).__name__}.{name}", other))
        return result if result is NotImplemented else _from_host(result)

    apply.__name__ = name
    return apply


_BINARY: Final = "add sub mul truediv floordiv mod divmod pow"
for _name in (*_BINARY.split(), *(f"r{each}" for each in _BINARY.split() if each != "pow"), "eq", "ne"):
    setattr(Series, f"__{_name}__", _operator(f"__{_name}__"))


class Polynomial(Series):
    """A series of powers of x."""

    __slots__ = ()
    _kind, _value = _Polynomial, staticmethod(polyval)


class Chebyshev(Series):
    """A series of Chebyshev polynomials of the first kind."""

    __slots__ = ()
    _kind, _value = _Chebyshev, staticmethod(chebval)


class Legendre(Series):
    """A series of Legendre polynomials."""

    __slots__ = ()
    _kind, _value = _Legendre, staticmethod(legval)


class Hermite(Series):
    """A series of Hermite polynomials as physics has them."""

    __slots__ = ()
    _kind, _value = _Hermite, staticmethod(hermval)


class HermiteE(Series):
    """A series of Hermite polynomials as probability theory has them."""

    __slots__ = ()
    _kind, _value = _HermiteE, staticmethod(hermeval)


class Laguerre(Series):
    """A series of Laguerre polynomials."""

    __slots__ = ()
    _kind, _value = _Laguerre, staticmethod(lagval)


_CLASSES: Final[dict[Any, Any]] = {
    kind._kind: kind for kind in (Polynomial, Chebyshev, Legendre, Hermite, HermiteE, Laguerre)
}


class _HostAttribute:
    """An attribute that NumPy's class has as well as its instances."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        return _from_host(getattr(owner._kind if instance is None else instance._host, self._name))


for _kind in _CLASSES.values():
    for _name in ("fit", "fromroots", "identity", "basis", "cast"):
        _constructor = with_arrays(f"{_kind.__name__}.{_name}", getattr(_kind._kind, _name))
        setattr(_kind, _name, staticmethod(_constructor))
    for _name in ("domain", "window", "basis_name"):
        setattr(_kind, _name, _HostAttribute(_name))


class poly1d(Series):
    """A polynomial as coefficients, that of the highest power first, or by its roots, as NumPy's `poly1d`.

    c_or_r: the coefficients, or with `r` the roots.  variable: the letter that `str` shows.  Called with an Array it is
    `xarr.polyval`, in traced functions too; with a poly1d the composition.  `polyadd` and the others give Arrays of
    coefficients.  Source: NumPy, `poly1d`.
    """

    __slots__ = ()
    _kind, _value = np.poly1d, staticmethod(polyval)

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        self._host = np.poly1d(_on_host("poly1d", c_or_r), r, variable)

    def __call__(self, val: Any) -> Any:
        """The values at val, of its shape."""
        if isinstance(val, Handle):
            return evaluated(self._host.coeffs, val)
        return _from_host(self._host(_on_host("poly1d", val)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._host.coeffs, dtype)

    def __getitem__(self, power: int) -> Any:
        return _from_host(self._host[power])

    def __setitem__(self, power: int, value: Any) -> None:
        self._host[power] = _on_host("poly1d", value)


_CLASSES[np.poly1d] = poly1d


def exports(module: Any, name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module called `name`, which has what NumPy's has."""
    public = [each for each in module.__all__ if not hasattr(np.polynomial, each)]

    def __getattr__(each: str) -> Any:
        member = getattr(module, each, None) if each in public else None
        if member is None:
            raise missing(name, each)
        return with_arrays(each, member) if callable(member) else _from_host(member)

    return __getattr__, lambda: sorted(module.__all__)
