"""Writing to a part of an Array: where it warns, and where it must not, held against NumPy's views."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.errors import DroppedUpdateWarning, InputError, PartUpdateWarning, TracedValueError

#: What makes an array of another one, `x` of shape 4 × 6; of these NumPy makes views that can be written to.
VIEWS = (
    "x[1]", "x[-1]", "x[1:3]", "x[::2]", "x[::-1, 1]", "x[:]", "x[...]", "x[None]", "x[1, ...]", "x[1, 2, ...]",
    "x[np.int64(1)]", "x[1:][0]", "x[0][2:5][::2]", "x.T", "x.T[1]", "x.mT", "x.transpose(1, 0)", "x.reshape(6, 4)",
    "x.reshape(-1)", "x.reshape(-1)[3:]", "x.ravel()", "x.T.ravel(order='F')", "x[:, None].squeeze()",
    "x.swapaxes(0, 1)",
    "x[:, ::2].reshape(-1)",
    "x[1:3].reshape(2, 3, 2)", "x.real", "xp.reshape(x, (24,))", "xp.transpose(x)", "xp.moveaxis(x, 0, 1)",
    "xp.rollaxis(x, 1)", "xp.swapaxes(x, 0, 1)", "xp.squeeze(x[None])", "xp.expand_dims(x, 1)", "xp.flip(x)",
    "xp.flipud(x)", "xp.fliplr(x)", "xp.rot90(x)", "xp.rot90(x, 2)", "xp.atleast_3d(x)", "xp.atleast_1d(x)[1]",
    "xp.split(x, 2)[1]", "xp.array_split(x, 3, axis=1)[2]", "xp.hsplit(x, 2)[0]", "xp.vsplit(x, 2)[0]",
    "xp.unstack(x)[1]", "xp.unstack(x, axis=1)[1]", "xp.ravel(x)", "xp.permute_dims(x, (1, 0))",
    "xp.matrix_transpose(x)", "next(iter(x))", "[*x][2]", "xp.real(x)", "x.view()", "x.view(float)[1]",
    "xp.einsum('ij', x)", "xp.einsum('ij->ji', x)", "xp.einsum('i...->...i', x)", "xp.einsum('ii->i', x[:, :4])",
    "xp.einsum(x, [0, 1], [1, 0])",
)  # fmt: skip
#: Of these it makes views that cannot be written to, but which are parts here.
READ_ONLY = ("xp.broadcast_to(x, (2, 4, 6))", "x.diagonal()", "xp.diagonal(x)", "xp.diag(x)")
#: Of these it makes arrays of their own.
COPIES = (
    "x.copy()", "x[1].copy()", "x[[1]]", "x[x > 3]", "x[1, [0, 2]]", "x.flatten()", "x.T.reshape(-1)",
    "x.T.ravel()",
    "x[:, 1:].ravel()", "xp.copy(x)", "x + 0", "x.astype('float32')", "xp.array(x)",
    "xp.where(x > 1, x, 0)", "xp.concatenate([x, x])", "xp.roll(x, 0)", "xp.take(x, 1, 0)", "xp.sort(x)",
    "xp.tile(x, 1)",
    "xp.repeat(x, 1)", "x[xp.asarray(1)]", "xp.pad(x, 0)", "xp.round(x)", "xp.triu(x)", "copy.copy(x)[()].copy()",
    "copy.deepcopy(x[1])", "pickle.loads(pickle.dumps(x[1]))", "xp.append(x, x)", "xp.stack([x])", "xp.clip(x, 0, 99)",
    "xp.einsum('ij->i', x)", "xp.einsum('ij,ij->ij', x, x)",
    "xp.cumsum(x, 0)", "xp.trim_zeros(x[0]).copy()", "xp.resize(x, (4, 6))", "xp.diff(x)", "xp.vstack([x])", "x[1:1]",
)  # fmt: skip
#: What writes to a part p, in both namespaces.
WRITES = (
    "p += 1", "p -= 1", "p *= 2", "p /= 2", "p //= 2", "p **= 2", "p %= 2", "p[...] = 3", "p[0] = 1", "p[-1:] += 1",
    "p.fill(3)", "p.flat[0] = 1", "p.flat = 4", "xp.copyto(p, 1)", "np.copyto(p, 1)", "xp.put(p, [0], [2])",
    "p.put([0], 2)", "xp.putmask(p, p > -1, 2)", "xp.place(p, p > -1, [2])", "xp.add.at(p, (0,), 1)",
    "p.sort()", "p.sort(0)", "p.partition(0)", "xp.negative.at(p, (0,))", "p[p > -1] = 0",
    "xp.put_along_axis(p, xp.zeros((1,) * p.ndim, dtype=int), 1, -1)",
)  # fmt: skip


def namespace(xp: Any, x: Any) -> dict[str, Any]:
    return {"xp": xp, "np": np, "x": x, "copy": copy, "pickle": pickle}


def host() -> np.ndarray[Any, Any]:
    return np.arange(10.0, 34.0).reshape(4, 6)


def warnings_of(program: str, scope: dict[str, Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "program.py", "exec"), scope)
    return caught


@pytest.mark.implicit
@pytest.mark.parametrize("make", VIEWS)
def test_writing_to_what_numpy_views_warns(make: str) -> None:
    for write in WRITES:
        original = host()
        program = f"p = {make}\n{write}"
        if "put_along" in write and make == "x[1, 2, ...]":
            continue
        try:
            exec(program, namespace(np, original))
        except (IndexError, ValueError, np.exceptions.AxisError):
            continue  # an array without dimensions
        assert write in ("p.sort()", "p.sort(0)", "p.partition(0)") or (original != host()).any(), program
        x = xarr.asarray(host())
        caught = warnings_of(program, namespace(xarr, x))
        assert [(each.category, each.filename, each.lineno) for each in caught] == [
            (PartUpdateWarning, "program.py", 2)
        ], (program, [str(each.message) for each in caught])
        assert (np.asarray(x) == host()).all()


@pytest.mark.implicit
@pytest.mark.parametrize("make", COPIES)
def test_writing_to_what_numpy_copies_does_not_warn(make: str) -> None:
    original = host()
    scope = namespace(np, original)
    p = eval(make, scope)
    assert not np.shares_memory(p, original) or not p.size
    for write in ("p += 1", "p[...] = 3", "p.fill(3)"):
        assert not warnings_of(f"p = {make}\n{write}", namespace(xarr, xarr.asarray(host())))


@pytest.mark.parametrize("make", READ_ONLY)
def test_writing_to_what_numpy_lets_nobody_write_to_says_so(make: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        exec(f"p = {make}\np += 1", namespace(np, host()))
    (caught,) = warnings_of(f"p = {make}\np += 1", namespace(xarr, xarr.asarray(host())))
    assert "NumPy makes read-only" in str(caught.message)


def test_bytes_that_do_not_lie_side_by_side_are_no_part() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        host().T.view("int8")
    assert not warnings_of("p = x.T.view('int8'); p += 1", namespace(xarr, xarr.asarray(host())))


def test_a_part_of_complex_numbers() -> None:
    x = xarr.asarray(host() + 1j)
    for make, rewrite in (("x.real", "+ 1j * x.imag"), ("x.imag", "x.real + 1j *")):
        (caught,) = warnings_of(f"p = {make}\np += 1", namespace(xarr, x))
        assert rewrite in str(caught.message)
    assert not warnings_of("x.real += 1\nx.imag[...].copy().fill(0)\nx.imag -= 1", namespace(xarr, x))


@pytest.mark.parametrize(
    "program",
    [
        "x[0] += 1", "x[0, 1] += 1", "x[1:][...] ; x[1:] *= x[1:]", "x[::2] -= 1; x[0][1]", "x.real += 1",
        "x = x.reshape(24); x[0] = 5", "x = x.T; x += 1", "x = x[1:]; x.fill(2)", "p = x[0] + 0; p += 1",
        "p = x[0]; x = None; p += 1", "p = x[0]; del x; p[0] = 1", "x[0, 1] = 5", "x[0] = 5", "x[x > 2] = 5",
        "x[\n    0\n] += (\n  1 +\n  2)", "s = x[0, 0]; s += 1", "for s in x[0]: s += 1", "p = x[0] * 1; p.sort()",
        "for i in range(3): x[i] += i", "for i in np.arange(3): x[i] += i", "x[0].sum(); x[0].copy().sort()",
        "p = (x + 1).reshape(-1); p[3] = 2", "x.shape = (24,); x[3] = 1", "p = x[2:2]; p += 1; p.fill(3)",
        "x @= xp.eye(6)", "x.flat[3] += 1", "x.T.copy()[0] = 4", "p = x[[0, 1]]; p[0] += 1",
    ],
)  # fmt: skip
@pytest.mark.implicit
@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
def test_what_changes_x_itself_or_nothing_of_it_does_not_warn(program: str) -> None:
    scope = namespace(xarr, xarr.asarray(host()))
    assert not [str(each.message) for each in warnings_of(program, scope)]
    if scope.get("x") is not None:
        wanted = namespace(np, host())
        exec(program, wanted)
        assert (np.asarray(scope["x"]) == wanted["x"]).all()


TEXTS = (
    ("x[0][1] = 5", "x = x.at[0, 1].set(5)", "x[0].copy()"),
    ("row = x[0]; row += 1", "x = x.at[0].add(1)", "row = x[0].copy()"),
    ("row = x[1, 2:]; row[0] = 3.5", "x = x.at[1, 2:].set(x[1, 2:].at[0].set(3.5))", "row = x[1, 2:].copy()"),
    ("x[2].fill(3)", "x = x.at[2].set(3)", "x[2].copy()"),
    ("x[:2].sort()", "x = x.at[:2].set(xarr.sort(x[:2]))", "x[:2].copy()"),
    ("x[0] //= 2; p = x[0]; p //= x[1]", "x = x.at[0].set(x[0] // v)", "p = x[0].copy()"),
    ("x.T[0] = 5", "x = x.T.at[0].set(5).T", "x.T.copy()"),
    ("x.reshape(-1)[3] = 1", "x = x.reshape(-1).at[3].set(1).reshape(x.shape)", "x.reshape(-1).copy()"),
    ("p = x[::2][1]; p += 1", "x = x.at[::2].set(x[::2].at[1].add(1))", "p = x[::2][1].copy()"),
    ("for row in x: row += 1", "x = x.at[0].add(1)", "row = x[0].copy()"),
    ("np.copyto(x[0], 1)", "x = x.at[0].set(1)", "x[0].copy()"),
    (
        "b = np.flip(x, 0); b -= 1",
        "x = xarr.flip(xarr.flip(x, (0,)).at[...].subtract(1), (0,))",
        "b = xarr.flip",
    ),
    (
        "d = xp.einsum('ii->i', x[:, 1:5]); d += 1",
        "xarr.einsum('ii->i', x[:, 1:5]).at[...].add(1)",
        "d = xarr.einsum('ii->i', x[:, 1:5]).copy()",
    ),
    ("x.view('int64')[1] = 5", 'x = x.view("int64").at[1].set(5).view(x.dtype)', 'x.view("int64").copy()'),
    ("x.view()[1] = 5", "x = x.at[...].set(x[...].at[1].set(5))", "x[...].copy()"),
    ("x[[0]][...] = 1; x[1:].put([0], 3)", "x = x.at[1:].set(x[1:].at[i].set(3))", "x[1:].copy()"),
)


@pytest.mark.implicit
@pytest.mark.parametrize(("program", "rewrite", "copied"), TEXTS)
def test_the_text_names_the_variables_and_both_rewrites(program: str, rewrite: str, copied: str) -> None:
    first, *_ = warnings_of(program, namespace(xarr, xarr.asarray(host())))
    assert rewrite in str(first.message)
    assert copied in str(first.message)
    assert "program.py:1" in str(first.message)
    if " v)" in rewrite or "[i]" in rewrite:
        return
    rewrite = str(first.message).partition("write ")[2].partition(" to change x")[0]
    # What the text says is what NumPy does.
    changed = namespace(np, host())
    exec(program if "for" not in program else "x[0] += 1", changed)
    scope = {**namespace(xarr, xarr.asarray(host())), "xarr": xarr}
    exec(program.split("//= 2;")[0] if "//" in program else rewrite, scope)
    assert (np.asarray(scope["x"]) == changed["x"]).all()


class Model:
    def __init__(self) -> None:
        self.weights = xarr.zeros((2, 2))

    def change(self) -> None:
        self.weights[0][1] = 3


def test_an_attribute_of_self_is_named() -> None:
    with pytest.warns(PartUpdateWarning, match=r"self\.weights = self\.weights\.at\[0, 1\]\.set\(3\)"):
        Model().change()


def test_python_shows_one_warning_a_line() -> None:
    x, scope = xarr.asarray(host()), {}
    scope = namespace(xarr, x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        exec("for i in range(4):\n    row = x[i]\n    row += i\nfor row in x:\n    row += 1", scope)
    assert [each.lineno for each in caught] == [3, 5]


def test_a_part_that_was_written_to_is_an_array_of_its_own() -> None:
    caught = warnings_of(
        "p = x[0]\np += 1\np += 1\np[0] = 3\np.sort()", namespace(xarr, xarr.asarray(host()))
    )
    assert [each.lineno for each in caught] == [2]
    assert len(warnings_of("p = x[0]\np.shape = (2, 3)\np += 1", namespace(xarr, xarr.asarray(host())))) == 1


def test_a_part_of_a_part_points_at_the_whole() -> None:
    x = xarr.asarray(host())
    p = x[1:]
    q = p[0]
    del p
    with pytest.warns(PartUpdateWarning, match=r"q, that is x\[1:\]\[0\], is a part of x"):
        q += 1
    with pytest.warns(PartUpdateWarning, match="is a part of p"):
        p = x[1:]
        q = p[0]
        del x
        q += 1


def test_the_old_name_of_the_warning_holds() -> None:
    x = xarr.asarray(host())
    with pytest.warns(DroppedUpdateWarning):
        x[0][1] = 2


def test_an_error_of_the_warning_leaves_the_part_as_it_was() -> None:
    x = xarr.asarray(host())
    row = x[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PartUpdateWarning):
            row += 1
    assert row.tolist() == host()[0].tolist()


@pytest.mark.implicit
def test_in_a_traced_function() -> None:
    def function(x: Any) -> Any:
        x[0][1] = 2
        row = x[1]
        row += 1
        y = x + 0
        y[0] += 1
        own = x[2].copy()
        own += 1
        return y

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xarr.jit(function)(xarr.asarray(host()))
    assert len(caught) == 2
    assert {each.category for each in caught} == {PartUpdateWarning}


def test_parts_keep_nothing_alive() -> None:
    x = xarr.asarray(host())
    gone = weakref.ref(x)
    parts = [x[0], x.T, x.reshape(-1), x[0][1:], *x]
    gc.disable()
    try:
        del x
        assert gone() is None
        seen = [weakref.ref(part) for part in parts]
        parts.clear()
        assert not [each for each in seen if each() is not None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "step", ["x = x[::-1]", "x = x.T", "x = x.reshape(2, 3).reshape(6)", "x.shape = (6,)"]
)
@pytest.mark.parametrize("outermost", ["x", "x[:]"])
def test_a_loop_of_parts_of_parts_remembers_few(step: str, outermost: str) -> None:
    whole = xarr.arange(6)
    scope = {"x": eval(outermost, {"x": whole})}
    if outermost == "x":
        del whole
    for _ in range(200):
        exec(step, scope)
    steps, part = 0, scope["x"]._part
    while part is not None:
        steps, part = steps + 1, part[3]
    assert steps <= 40


def test_a_part_of_a_part_that_is_gone_is_one_of_what_lives() -> None:
    x = xarr.zeros((4, 6))
    y = x[1:]
    p = x[1:].T[1:]
    del y
    with pytest.warns(PartUpdateWarning, match=r"x = x.at\[1:\]"):
        p[0] = 1


def test_in_threads() -> None:
    x = xarr.asarray(host())
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(50):
                own = x[i % 4].copy()
                own += 1
                part = x[i % 4]
                del part
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# --- out= of a part -----------------------------------------------------------------------------------------------


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("call", "rewrite"),
    [
        (
            lambda x: xarr.add(x[0], 1, out=x[0]),
            r"add: out= is x\[0\], a part of x.*x = x\.at\[0\]\.set\(xarr\.add\(…\)\)",
        ),
        (lambda x: x.sum(0, out=x[1]), r"sum: out= is x\[1\].*x\[1\]\.copy\(\)"),
        (lambda x: np.negative(x.T, x.T), r"x = xarr\.negative|x\.T\.at\[\.\.\.\]"),
        (lambda x: xarr.add.reduce(x, 0, out=x[1]), r"add\.reduce: out= is x\[1\]"),
    ],
)
def test_out_of_a_part_is_refused(call: Callable[[Any], Any], rewrite: str) -> None:
    x = xarr.asarray(host())
    with pytest.raises(InputError, match=rewrite):
        call(x)
    assert (np.asarray(x) == host()).all()


@pytest.mark.implicit
def test_out_of_what_is_a_part_no_more() -> None:
    x = xarr.asarray(host())
    row, own = x[0], x[1].copy()
    assert xarr.add(own, 1, own) is own
    del x
    assert xarr.add(row, 1, row) is row
    assert row.tolist() == (host()[0] + 1).tolist()


def test_a_traced_argument_is_no_out() -> None:
    with pytest.raises(TracedValueError, match="in place"):
        xarr.jit(lambda x: xarr.add(x, 1, out=x))(xarr.zeros(3))
