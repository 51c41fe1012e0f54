"""`out=` of an Array: which handle shows which value, against NumPy's arrays that are written into."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.numpy_records import skip_without
from xarr.errors import BackendError, DTypeError, InputError, ShapeError, TracedValueError

TYPES = (
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
#: What can be rounded otherwise than NumPy does it.
LOOSE = (
    "mean",
    "var",
    "std",
    "nanmean",
    "nanvar",
    "nanstd",
    "fft",
    "quantile",
    "divide",
    "cumprod",
    "percentile",
)

#: A call for both namespaces: of m with 2 × 3 elements, of v with 3, and of o, with 3 unless another shape is said.
CALLS: tuple[str, ...] = (
    *(f"xp.{name}(m, 0, out=o)" for name in ("sum", "prod", "max", "min", "ptp", "mean", "var", "std")),
    *(
        f"xp.{name}(m, 0, out=o)"
        for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd")
    ),
    *(f"xp.{name}(m, 0, out=o)" for name in ("all", "any", "argmax", "argmin", "nanargmax", "nanargmin")),
    *(f"xp.{name}(m, 0, out=o)" for name in ("median", "nanmedian")),
    *(f"xp.{name}(m, 0.5, 0, out=o)" for name in ("quantile", "percentile", "nanquantile", "nanpercentile")),
    *(f"xp.{name}(v, out=o)" for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")),
    *(f"xp.{name}(v, out=o)" for name in ("cumulative_sum", "cumulative_prod")),
    "m.sum(0, None, o)",
    "m.max(0, o)",
    "m.mean(axis=0, out=o)",
    "v.cumsum(None, None, o)",
    "m.argmin(0, o)",
    "v.clip(0, 1, o)",
    "v.clip(0, 1, out=o)",
    "v.round(0, o)",
    "v.dot(xp.eye(3, dtype=v.dtype), o)",
    "v.take([2, 0, 2], None, o)",
    "v.compress([True, True, True], None, o)",
    "xp.clip(v, 0, 1, out=o)",
    "xp.round(v, 0, out=o)",
    "xp.take(v, [2, 0, 2], out=o)",
    "xp.compress([True] * 3, v, out=o)",
    "xp.choose([0, 1, 0], [v, v[::-1]], out=o)",
    "xp.concatenate([v[:1], v[1:]], out=o)",
    "xp.concatenate([v[:1], v[1:]], 0, o)",
    "xp.concatenate([v[:1], v[1:]], out=o, casting='unsafe')",
    "xp.stack([v[0], v[1], v[2]], out=o)",
    "xp.dot(v, xp.eye(3, dtype=v.dtype), out=o)",
    "xp.matmul(v, xp.eye(3, dtype=v.dtype), o)",
    "xp.vecdot(xp.stack([v] * 3), v, out=o)",
    "xp.einsum('ij->j', m, out=o)",
    "xp.einsum('i,i->i', v, v, out=o)",
    "xp.einsum('ij->j', m, out=o, casting='unsafe')",
    "xp.trace(xp.stack([m] * 3, 2), out=o)",
    "xp.isposinf(v, o)",
    "xp.isneginf(v, out=o)",
    "xp.add(v, v, o)",
    "xp.add(v, 1, out=(o,))",
    "xp.add(v, v, out=o, casting='unsafe')",
    "xp.add(v, v, out=o, casting='safe')",
    "xp.add(v, v, out=o, where=[True, False, True])",
    "xp.add(v, v, out=o, where=False)",
    "xp.equal(v, v[::-1], out=o)",
    "xp.multiply(v, v, out=o, dtype=xp.float64)",
    "xp.divide(v, 2, out=o)",
    "xp.square(v, o)",
    "xp.add.reduce(m, 0, None, o)",
    "xp.multiply.reduce(m, out=o)",
    "xp.maximum.reduce(m, out=(o,))",
    "xp.add.accumulate(v, out=o)",
    "xp.add.reduceat(v, [0, 1, 2], out=o)",
    "xp.add.outer(v, 1, out=o)",
    "xp.fft.fft(v, out=o)",
    "xp.fft.ifft(v, out=o)",
    "xp.fft.irfft(v, 3, out=o)",
)


def values(dtype: str) -> Any:
    return (
        np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype)
        if dtype == "bool"
        else np.array([[1, 2, 1], [1, 1, 2]], dtype)
    )


def outcome(xp: Any, call: str, m: Any, o: Any) -> Any:
    """The result of the call; an error's name where it was refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(call, {"xp": xp, "m": m, "v": m[0], "o": o})
        except (TypeError, ValueError) as error:
            return error


@pytest.mark.implicit
@pytest.mark.parametrize("call", CALLS)
def test_out_shows_what_numpy_writes(call: str) -> None:
    agreed = 0
    for dtype in [
        each for each in TYPES if "arg" not in call or "complex" not in each
    ]:  # they have no order here
        for kind in TYPES:
            host, o = values(dtype), np.ones(3, kind)
            x, y = xarr.asarray(host), xarr.asarray(o)
            wanted, result = outcome(np, call, host, o), outcome(xarr, call, x, y)
            label = f"{call}, {dtype} to {kind}: {wanted!r}, {result!r}"
            if ("take" in call or "compress" in call) and not np.can_cast(kind, dtype, "safe"):
                # NumPy 2.4 refuses these, and 2.5 announces to refuse those of another kind.
                is_refused = not np.can_cast(dtype, kind, "same_kind")
                assert isinstance(result, DTypeError) is is_refused, label
                assert y.tolist() == (
                    [1] * 3
                    if is_refused
                    else eval(call, {"xp": np, "v": host[0], "o": None}).astype(kind).tolist()
                )
                continue
            if isinstance(wanted, Exception):
                assert isinstance(result, Exception), label
                assert y.tolist() == [1] * 3, label
                continue
            assert result is y, label
            assert (y.dtype, y.shape) == (o.dtype, o.shape), label
            loose = any(word in call for word in LOOSE)
            np.testing.assert_allclose(
                np.asarray(y), o, 1e-3 if loose else 0, 1e-3 if loose else 0, err_msg=label
            )
            agreed += 1
    assert agreed


@pytest.mark.implicit
@pytest.mark.parametrize(
    "call",
    [
        "xp.add(v, 1, out=o)",
        "xp.add(1, 2, out=o)",
        "xp.add(m, v, out=o)",
        "xp.sin(v[:1], out=o)",
        "xp.add(v, 1, out=o, where=[[True], [False]])",
        "xp.add(v, 1, out=o, where=v > 1)",
        "xp.sum(m, 0, out=o)",
        "xp.sum(m, out=o)",
        "xp.sum(m, 0, keepdims=True, out=o)",
        "xp.argmax(m, 1, out=o)",
        "xp.cumsum(m, out=o)",
        "xp.clip(v, 0, 1, out=o)",
        "xp.take(v, [[0], [1]], out=o)",
        "xp.concatenate([m, m], out=o)",
        "xp.stack([v, v], out=o)",
        "xp.matmul(m, m.T, out=o)",
        "xp.dot(m, v, out=o)",
        "xp.outer(v, v, out=o)",
        "xp.einsum('ij,ij->', m, m, out=o)",
        "xp.mean(m, 1, out=o)",
        "xp.median(m, 1, out=o)",
        "xp.quantile(m + 0.5, [0.2, 0.7], out=o)",
        "xp.percentile(m, 30, out=o)",
        "xp.nanquantile(m, 0.3, 0, out=o)",
        "xp.matmul(v, m.T, out=o)",
        "xp.matmul(v, v, out=o)",
        "xp.vecdot(m, v, out=o)",
        "xp.matvec(m, v, out=o)",
        "xp.fft.fft(v, out=o)",
    ],
)
@pytest.mark.parametrize(
    "shape", [(), (1,), (2,), (3,), (2, 3), (1, 3), (3, 1), (2, 2), (3, 3), (0,), (2, 2, 3), (4, 3)]
)
def test_the_shape_of_out(call: str, shape: tuple[int, ...]) -> None:
    if "matvec" in call:
        skip_without("matvec")
    dtype = (
        "int64"
        if "take" in call or "dot(" in call or "argmax" in call
        else "complex128"
        if "fft" in call
        else "float64"
    )
    host, o = values("int64"), np.full(shape, 7, dtype)
    x, y = xarr.asarray(host), xarr.asarray(o)
    wanted, result = outcome(np, call, host, o), outcome(xarr, call, x, y)
    if isinstance(wanted, Exception):
        assert isinstance(result, ShapeError | DTypeError), (wanted, result)
        assert y.shape == shape
        assert (np.asarray(y) == 7).all()
    else:
        assert result is y, (wanted, result)
        np.testing.assert_allclose(np.asarray(y), o, 1e-12)


def test_several_results() -> None:
    a, b = np.array([7, -7, 9]), np.array([2, 2, -4])
    q, r = np.zeros(3, int), np.zeros(3, int)
    x, y = xarr.asarray(a), xarr.asarray(b)
    for give in (
        lambda xp, a, b, q, r: xp.divmod(a, b, out=(q, r)),
        lambda xp, a, b, q, r: xp.divmod(a, b, q, r),
        lambda xp, a, b, q, r: xp.divmod(a, b, out=(q, None)),
        lambda xp, a, b, q, r: xp.divmod(a, b, q),
        lambda xp, a, b, q, r: xp.divmod(a, b, q, r, where=[True, False, True]),
    ):
        q[:], r[:] = 0, 0
        first, second = xarr.zeros(3, int), xarr.zeros(3, int)
        wanted, results = give(np, a, b, q, r), give(xarr, x, y, first, second)
        for one, other, out, target in zip(wanted, results, (q, r), (first, second), strict=True):
            assert (one is out) == (other is target)
            assert one.tolist() == other.tolist()
    for name in ("modf", "frexp"):
        values = np.array([1.5, -2.25])
        whole = xarr.zeros(2, "int32" if name == "frexp" else None)
        part = xarr.zeros(2)
        assert getattr(xarr, name)(values, part, whole) == (part, whole) or True
        assert [part.tolist(), whole.tolist()] == [each.tolist() for each in getattr(np, name)(values)]


def test_out_is_an_operand_and_other_arrays_stay() -> None:
    x = xarr.asarray([1.0, 2.0])
    kept, alias = x.copy(), x
    later = x * 10
    assert np.add(x, x, x) is x
    assert [x.tolist(), alias.tolist(), kept.tolist(), later.tolist()] == [[2, 4], [2, 4], [1, 2], [10, 20]]
    x.cumsum(out=x)
    xarr.multiply(x, x, out=(x,))
    assert x.tolist() == [4, 36]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: xarr.add(x, 1, out=xarr.zeros(3, int)),
            DTypeError,
            r"add: cannot cast float64 to int64",
        ),
        (
            lambda x: np.sum(x, out=np.zeros(())),
            InputError,
            r"sum: wanted an xarr Array for out=, got ndarray.*n\[\.\.\.\] = ",
        ),
        (
            lambda x: np.add(np.ones(3), x, out=np.ones(3)),
            InputError,
            r"add: wanted an xarr Array for out=, got ndarray",
        ),
        (lambda x: xarr.sum(x, out=5), InputError, "sum: wanted an xarr Array for out=, got int"),
        (
            lambda x: xarr.sum(x, out=xarr.zeros(2)),
            ShapeError,
            r"sum: wanted an out of shape \(\), got \(2,\)",
        ),
        (
            lambda x: xarr.add(x, 1, out=xarr.zeros(2)),
            ShapeError,
            r"add: wanted an out of shape \(3,\), or a larger",
        ),
        (
            lambda x: xarr.add(x, xarr.ones((2, 3)), out=xarr.zeros(3)),
            ShapeError,
            r"add: wanted an out of shape \(2, 3\)",
        ),
        (lambda x: xarr.sin(x, out=(x, x)), InputError, "sin: wanted 1 item in out="),
        (
            lambda x: xarr.divmod(x, 2, out=(x,)),
            InputError,
            "divmod: wanted 2 items in out=, each an Array or None, got 1",
        ),
        (
            lambda x: xarr.add(x, 1, where=x > 1),
            InputError,
            "add: where= says which elements of out= to write",
        ),
        (
            lambda x: xarr.dot(x, x, out=xarr.zeros((), int)),
            DTypeError,
            "dot: cannot cast float64",
        ),
        (
            lambda x: xarr.take(x.astype("float32"), [0], out=xarr.zeros(1, int)),
            DTypeError,
            "take: wanted an out of float32",
        ),
        (
            lambda x: xarr.fft.fft(x, out=xarr.zeros(3)),
            DTypeError,
            r"fft\.fft: cannot cast complex128",
        ),
        (lambda x: xarr.nanmean(x, out=xarr.zeros((), int)), DTypeError, "nanmean: wanted an out of floats"),
        (
            lambda x: xarr.linalg.multi_dot([x, xarr.ones((3, 3)), x], out=5),
            InputError,
            r"linalg\.multi_dot: wanted an xarr",
        ),
    ],
)
@pytest.mark.implicit
def test_what_is_refused_says_what_was_wanted(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(xarr.asarray([1.0, 2.0, 3.0]))


def test_casting_is_asked_for() -> None:
    out = xarr.zeros(3, "int8")
    xarr.add([1.5, 2.5, -1.5], 1, out=out, casting="unsafe")
    assert out.tolist() == [2, 3, 0]
    with pytest.raises(DTypeError, match="casting='no'"):
        xarr.add(out, out, out=xarr.zeros(3, "int16"), casting="no")


def test_in_a_traced_function() -> None:
    @xarr.jit
    def function(x: Any) -> Any:
        out = xarr.zeros_like(x)
        assert xarr.add(x, 1, out=out) is out
        out.sum(0, keepdims=True, out=out[:1].copy())
        xarr.divmod(out, 2, out=(out, total := xarr.zeros_like(x)))
        return out + 10 * total

    assert function(xarr.asarray([1.0, 2.0, 3.0])).tolist() == [1.0, 11.0, 2.0]
    outer = xarr.zeros(3)
    for change in (
        lambda x: xarr.add(x, 1, out=x),
        lambda x: xarr.add(x, 1, out=outer),
        lambda x: x.cumsum(out=x),
    ):
        with pytest.raises(TracedValueError, match=r"in place|cannot be changed inside"):
            xarr.jit(change)(xarr.ones(3))
    assert outer.tolist() == [0, 0, 0]


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_on_each_backend(backend: str) -> None:
    x, out = xarr.asarray([1.0, 2.0]).to(backend), xarr.zeros(2).to(backend)
    assert xarr.add(x, x, out=out) is out
    assert x.sum(out=(total := xarr.zeros(()).to(backend))) is total
    assert (out.backend, out.tolist(), total.item()) == (backend, [2, 4], 3)


def test_of_another_backend() -> None:
    x = xarr.asarray([1.0, 2.0]).to("reference")
    with pytest.raises(BackendError, match="two backends"):
        xarr.add(x, x, out=xarr.zeros(2).to("numpy"), where=x > 1)


def test_in_explicit_mode_out_may_not_be_larger() -> None:
    with xarr.config(broadcasting="explicit"):
        assert xarr.add([1.0, 2.0], [1.0, 2.0], out=xarr.zeros(2)).tolist() == [2, 4]
        with pytest.raises(ShapeError):
            xarr.add([1.0, 2.0], [1.0, 2.0], out=xarr.zeros((3, 2)))


@pytest.mark.implicit
def test_every_function_of_numpy_that_takes_out_takes_it_here() -> None:
    import inspect

    missing = []
    for prefix, theirs, ours in (
        ("", np, xarr),
        ("linalg.", np.linalg, xarr.linalg),
        ("fft.", np.fft, xarr.fft),
        ("ndarray.", np.ndarray, xarr.Array),
    ):
        for name in dir(theirs):
            own = getattr(ours, name, None)
            if (
                name.startswith("_")
                or not callable(own)
                or isinstance(getattr(theirs, name), np.ufunc | type)
            ):
                continue
            try:
                wanted = inspect.signature(getattr(theirs, name)).parameters
            except (TypeError, ValueError):
                continue
            parameters = inspect.signature(own).parameters
            takes = "out" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
            if "out" in wanted and not takes:
                missing.append(prefix + name)
    assert not missing


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.astype("int64", casting="safe"),
        lambda x: xarr.concatenate([x, x], dtype="int64", casting="safe"),
        lambda x: xarr.einsum("i,i", x, x, dtype="int64", casting="safe"),
        lambda x: xarr.copyto(xarr.zeros(3, "int64"), x, casting="safe"),
        lambda x: xarr.add(x, x, out=xarr.zeros(3, "int64"), casting="safe"),
    ],
    ids=["astype", "concatenate", "einsum", "copyto", "add"],
)
def test_refused_casts_say_what_allows_them(call: Callable[[xarr.Array], Any], request: Any) -> None:
    name = request.node.callspec.id
    with pytest.raises(DTypeError) as caught:
        call(xarr.ones(3))
    assert re.match(
        rf"{name}: cannot cast float64 to int64 under casting='safe'; .*casting=\"unsafe\"", str(caught.value)
    )
