"""`xarr.polynomial` and `poly1d`: NumPy's classes and functions with Arrays in and out."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.functions import same
from xarr.errors import TracedValueError

FAMILIES = ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"]
MODULES = ["polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre"]
C, X = np.array([1.0, -2, 0.5, 3]), np.linspace(-1, 2, 6).reshape(2, 3)


def alike(results: Any, wanted: Any) -> None:
    """Assert Arrays and xarr's series where NumPy has arrays, numbers and its own."""
    if isinstance(wanted, tuple | list):
        assert len(results) == len(wanted)
        for one, other in zip(results, wanted, strict=True):
            alike(one, other)
    elif hasattr(wanted, "coef"):
        assert (
            type(results).__module__.startswith("xarr.") and type(results).__name__ == type(wanted).__name__
        )
        assert str(results) == str(wanted)
        same(results.coef, wanted.coef, 1e-13)
    elif isinstance(wanted, np.ndarray | np.inexact):
        same(results, np.asarray(wanted), 1e-13)
    else:
        assert results == wanted


@pytest.mark.parametrize(
    "text",
    [
        "p.coef", "p.domain", "p.window", "p.degree()", "p.roots()", "p.deriv()", "p.integ(2)", "p.mapparms()",
        "p.trim(0.1)", "p.truncate(2)", "p.cutdeg(1)", "p.linspace(5)", "p + 1", "2 - p", "p * p", "p ** 2",
        "p // kind([1, 2])", "p % kind([1, 2])", "divmod(p, kind([1, 2]))", "-p", "+p", "p / 2", "len(p)", "p == p",
        "p != p", "kind.fit(X[0], X[0] ** 2, 2)", "kind.basis(2)", "kind.identity()", "kind.fromroots([1, 2])",
        "kind.domain", "kind.cast(p)", "p.convert(kind=family.Polynomial)", "p(X)", "p(0.5)", "p(X[:0])", "p(p)",
        "p.has_samecoef(p)", "p.copy()", "p - X[0]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_a_series_is_numpys_with_arrays(family: str, text: str) -> None:
    code = compile(text, text, "eval")

    def value(xp: Any) -> Any:
        kind = getattr(xp.polynomial, family)
        p = kind(xp.asarray(C), domain=[0, 3])
        if (
            "fit" in text
            or "basis" in text
            or "//" in text
            or "%" in text
            or "divmod" in text
            or "- X" in text
        ):
            p = kind(xp.asarray(C))
        return eval(code, {"p": p, "kind": kind, "X": xp.asarray(X), "family": xp.polynomial})

    alike(value(xarr), value(np))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("family", FAMILIES)
def test_values_under_jit(family: str, dtype: str) -> None:
    ours, theirs = (getattr(xp.polynomial, family)(C, domain=[0, 3]) for xp in (xarr, np))
    x = X.astype(dtype)
    same(xarr.jit(lambda v: ours(v))(xarr.asarray(x)), theirs(x), 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_coefficients_need_values(family: str) -> None:
    with pytest.raises(TracedValueError, match="evaluate a polynomial there as p"):
        xarr.jit(lambda c: getattr(xarr.polynomial, family)(c)(1.0))(xarr.ones(3))


@pytest.mark.parametrize("name", MODULES)
def test_functions_of_coefficients(name: str) -> None:
    ours, theirs = (importlib.import_module(f"{root}.polynomial.{name}") for root in ("xarr", "numpy"))
    assert sorted(theirs.__all__) == dir(ours)
    prefix = {"polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm"}.get(
        name, "herme" if name == "hermite_e" else "lag"
    )
    for text in (
        "add(C, C)",
        "mul(C, C)",
        "der(C)",
        "int(C)",
        "val(X, C)",
        "fit(X[0], X[1], 1)",
        "roots(C)",
        "vander(X, 2)",
    ):
        call, _, arguments = text.partition("(")
        scope = {"C": C, "X": X}
        operands = eval(f"({arguments[:-1]},)", scope)
        wanted = getattr(theirs, prefix + call)(*operands)
        arrays = [xarr.asarray(each) if isinstance(each, np.ndarray) else each for each in operands]
        alike(getattr(ours, prefix + call)(*arrays), wanted)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        ours.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "text",
    [
        "p(x)", "p(2)", "p([1, 2])", "p(p)", "p.c", "p.coeffs", "p.r", "p.o", "p.order", "p.deriv()", "p.integ(k=2)",
        "p + 1", "1 - p", "p * p", "p / xp.poly1d([1, 2])", "p ** 2", "-p", "p == p", "p != p", "p[1]", "p[9]",
        "len(p)", "list(p)", "str(p)", "repr(p)", "p.variable", "xp.poly1d([1, 2], True)", "xp.polyval(p, x)",
        "xp.poly1d(xp.polyfit(x[0], x[1], 1))", "xp.roots(p)", "xp.poly1d([2.0], variable='z')", "xp.asarray(p)",
    ],
)  # fmt: skip
def test_a_poly1d_is_numpys_with_arrays(text: str) -> None:
    def value(xp: Any) -> Any:
        return eval(text, {"xp": xp, "p": xp.poly1d(xp.asarray(C)), "x": xp.asarray(X)})

    alike(value(xarr), value(np))


def test_a_poly1d_under_jit_and_its_coefficients_set_and_copied() -> None:
    p, q = xarr.poly1d(C), np.poly1d(C)
    same(xarr.jit(lambda v: p(v))(xarr.asarray(X)), q(X), 1e-13)
    p[1], q[1] = 7, 7
    alike(p, q)
    alike(pickle.loads(pickle.dumps(p)), q)
    alike(copy.copy(xarr.polynomial.Polynomial(C)), np.polynomial.Polynomial(C))
    with pytest.raises(TypeError):
        p % p
    with pytest.raises(TracedValueError, match="poly1d"):
        xarr.jit(lambda c: xarr.poly1d(c)(1.0))(xarr.ones(3))
