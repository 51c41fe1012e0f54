"""On a backend whose memory is its own, programs copy their arguments in and what is looked at out, and no more."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import graph, type_of
from tests.support.opaque_backend import Backend, Buffer, OpaqueMemoryError
from xarr import Array, lax
from xarr.backend import get
from xarr.base.layouts import Layout
from xarr.compiler.programs import Programs
from xarr.errors import BackendError
from xarr.runtime import check_flags, evaluation

VALUES = np.arange(12.0).reshape(3, 4)


LOOKS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "shape": np.shape,
    "memoryview": memoryview,
    "len": len,
    "list": list,
    "bool": bool,
    "int": int,
    "float": float,
    "item": lambda buffer: buffer[0],
    "in": lambda buffer: 1 in buffer,
    "nbytes": lambda buffer: buffer.nbytes,
    "sum": lambda buffer: buffer + buffer,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_nobody_reads_its_buffers(opaque: Backend, look: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        look(opaque.from_host(VALUES))


def test_its_programs_take_no_arrays(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    program = opaque.compile(graph(lambda x: [lax.add(x, x)], type_of(VALUES)))
    (result,) = program(x._node.value)
    assert type(result) is Buffer
    assert_same(opaque.to_host(result), VALUES + VALUES)
    with pytest.raises(OpaqueMemoryError, match="wanted a buffer of the backend 'opaque', got ndarray"):
        program(VALUES)


def test_a_buffer_shares_no_memory_with_the_host(opaque: Backend) -> None:
    values = VALUES.copy()
    x = xarr.asarray(values)
    values[0] = -1
    assert_same(x, VALUES)
    assert not np.may_share_memory(opaque.to_host(x._node.value), opaque.to_host(x._node.value))


def test_it_is_no_backend_of_the_library() -> None:
    assert get("numpy").name == "numpy"
    assert "opaque" not in xarr.backend.available()


def transfers(opaque: Backend, run: Callable[[], Any]) -> tuple[int, int]:
    """Count the copies to the backend and from it by `run` and the computation of the Arrays that it returns."""
    with opaque.transfers() as counted:
        xarr.evaluate(*[leaf for leaf in xarr.tree.leaves(run()) if isinstance(leaf, xarr.Array)])
    return counted.from_host, counted.to_host


def test_transfers_are_counted(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    assert transfers(opaque, lambda: xarr.asarray(VALUES)) == (1, 0)
    assert transfers(opaque, lambda: xarr.asarray(np.asarray(x))) == (1, 1)
    with opaque.transfers() as counted:
        np.asarray(x)
    assert (counted.from_host, counted.to_host, counted.elements_to_host) == (0, 1, 12)


#: Programs over x of shape (3, 4), i = [0, 2] and the mask x > 3, all three there, and what they copy in and out.
PROGRAMS: dict[str, tuple[Callable[[Array, Array, Array], Any], int, int]] = {
    "arithmetic": (lambda x, i, m: xarr.exp(x) * 2.5 - 1, 0, 0),
    "reduction": (lambda x, i, m: (x.sum(), x.var(0), x.argmax()), 0, 0),
    "product": (lambda x, i, m: x @ x.T, 0, 0),
    "sort": (lambda x, i, m: xarr.sort(x), 0, 0),
    # Whether there is a solution is asked at once, as `except LinAlgError` around the call needs it.
    "solve": (lambda x, i, m: xarr.linalg.solve(xarr.eye(3), x), 0, 1),
    "quantile": (lambda x, i, m: xarr.quantile(x, 0.25), 0, 0),
    "percentile of some": (lambda x, i, m: xarr.percentile(x, [25, 50], axis=0), 1, 1),
    "gradient": (lambda x, i, m: xarr.gradient(x, x[0] * x[0], axis=1), 0, 1),
    "made here": (lambda x, i, m: (xarr.arange(5), xarr.zeros(5), xarr.linspace(0, 1, 5)), 0, 0),
    "an array of the host": (lambda x, i, m: x + VALUES, 1, 0),
    "x[1, ::2]": (lambda x, i, m: x[1, ::2], 0, 0),
    "x[i]": (lambda x, i, m: x[i], 0, 0),
    "x[i + 1]": (lambda x, i, m: x[i - 1], 0, 0),
    "x[x.argmin()]": (lambda x, i, m: x[x.argmin(0)[0]], 0, 0),
    "x[[0, 2]]": (lambda x, i, m: x[[0, 2]], 1, 0),
    "x[mask]": (lambda x, i, m: x[m], 1, 1),
    "x[1] = v": (lambda x, i, m: write(x, 1, 5.0), 0, 0),
    "x[i] = v": (lambda x, i, m: write(x, i, 5.0), 0, 0),
    "x[mask] = v": (lambda x, i, m: write(x, m, 5.0), 0, 0),
    "x.at[i].add(v)": (lambda x, i, m: x.at[i].add(1.0), 0, 0),
    "take": (lambda x, i, m: xarr.take(x, i, axis=0), 0, 0),
    "where": (lambda x, i, m: xarr.where(m, x, 0), 0, 0),
    "fori_loop": (lambda x, i, m: lax.fori_loop(0, 9, lambda k, c: c + x[k % 3], x[0]), 0, 0),
    "while_loop": (lambda x, i, m: lax.while_loop(lambda c: c.sum() < 99, lambda c: c + x, x), 0, 0),
    "scan": (lambda x, i, m: lax.scan(lambda c, row: (c + row, c * row), x[0], x), 0, 0),
    "cond": (lambda x, i, m: lax.cond(x.sum() > 3, lambda x: x + 1, lambda x: x - 1, x), 0, 0),
    "cond of a bool": (lambda x, i, m: lax.cond(True, lambda x: x + 1, lambda x: x - 1, x), 0, 0),
    "rows": (lambda x, i, m: list(x), 0, 0),
    "repr": (lambda x, i, m: repr(x), 0, 1),
    "str": (lambda x, i, m: str(x), 0, 1),
    "notebook": (lambda x, i, m: x._repr_html_(), 0, 1),
    "layout": (lambda x, i, m: x.layout, 0, 0),
    "questions of type": (lambda x, i, m: (x.shape, x.nbytes, len(x), x.device, x.backend), 0, 0),
    "float": (lambda x, i, m: float(x[1, 2]), 0, 1),
    "bool": (lambda x, i, m: bool((x >= 0).all()), 0, 1),
    "asarray": (lambda x, i, m: np.asarray(x), 0, 1),
    "asarray of bfloat16": (lambda x, i, m: np.asarray(x.astype("bfloat16")), 0, 1),
    "tolist": (lambda x, i, m: x.tolist(), 0, 1),
}


def write(x: Array, index: Any, value: Any) -> Array:
    copied = x.copy()
    copied[index] = value
    return copied


@pytest.mark.parametrize(("program", "into", "out"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_copies_its_arguments_in_and_what_is_looked_at_out(
    opaque: Backend, program: Callable[[Array, Array, Array], Any], into: int, out: int
) -> None:
    x, i = xarr.asarray(VALUES), xarr.asarray([0, 2])
    mask = (x > 3).evaluate()
    for _ in range(2):
        assert transfers(opaque, lambda: program(x, i, mask)) == (into, out)


LARGE = np.arange(40_000.0).reshape(200, 200)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "Arrays": (lambda x, y: x + y, ("x", "x"), 0),
    "a number": (lambda x, n: x * n + 1, ("x", 2.5), 0),
    "numbers of each kind": (lambda x, *n: [x * each for each in n], ("x", 2.5, 3, True, 2j), 0),
    "a number of NumPy": (lambda x, n: x * n, ("x", np.float32(2.5)), 0),
    "an array of NumPy without dimensions": (lambda x, n: x * n, ("x", np.array(2.5)), 0),
    "a number alone": (lambda n: (n, n + 1), (2.5,), 0),
    "an array of NumPy": (lambda x, y: x + y, ("x", VALUES), 1),
    "a large array of NumPy": (lambda y: (y, y + 1), (LARGE,), 1),
    "an index": (lambda x, i: x[i], ("x", "i"), 0),
    "a number as index": (lambda x, n: x[n], ("x", 2), 0),
    "a loop": (lambda x: lax.fori_loop(0, 9, lambda k, c: c + x[k % 3], x[0]), ("x",), 0),
}


@pytest.mark.parametrize(("function", "arguments", "into"), CALLS.values(), ids=CALLS)
def test_a_jitted_call_copies_arrays_of_the_host_in_once(
    opaque: Backend, function: Callable[..., Any], arguments: tuple[Any, ...], into: int
) -> None:
    known = {"x": xarr.asarray(VALUES), "i": xarr.asarray([0, 2])}
    operands = [known[each] if isinstance(each, str) else each for each in arguments]
    plain = function(*operands)
    jitted = xarr.jit(function)
    for _ in range(4):
        assert transfers(opaque, lambda: jitted(*operands)) == (into, 0)
    for result, wanted in zip(xarr.tree.leaves(jitted(*operands)), xarr.tree.leaves(plain), strict=True):
        assert_same(np.asarray(result), np.asarray(wanted))


@pytest.mark.parametrize(
    "shape", [(2000,), (1001,), (3, 400), (40, 7, 40), (200, 200), (2, 8, 2, 70)], ids=str
)
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex64", "bfloat16"])
def test_only_what_is_shown_of_an_array_is_copied(
    opaque: Backend, shape: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x = xarr.asarray(rng.normal(size=shape)).astype(dtype)
    host = x.to("numpy")
    shows: list[Callable[[Any], str]] = [
        str,
        lambda x: repr(x).replace(", backend=opaque", ""),
        lambda x: xarr.array2string(x, precision=3, edgeitems=2),
        lambda x: xarr.array2string(x, threshold=10, edgeitems=1),
        lambda x: xarr.array_str(x, precision=2),
    ]
    for show in shows:
        with opaque.transfers() as counted:
            text = show(x)
        assert text == show(host)
        assert (counted.from_host, counted.to_host) == (0, 1)
        assert counted.elements_to_host <= 7 ** len(shape)
    with opaque.transfers() as counted:
        x._repr_html_()
    assert (counted.from_host, counted.to_host) == (0, 1)
    assert counted.elements_to_host <= 7 ** len(shape)
    assert xarr.array2string(x, threshold=10**6) == xarr.array2string(host, threshold=10**6)


def test_the_backend_says_how_its_memory_lies(opaque: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xarr.asarray(np.asfortranarray(VALUES))
    assert x.layout == Layout.row_major(2)
    monkeypatch.setattr(Backend, "layout", lambda self, buffer, rank: Layout.column_major(rank))
    assert x.layout == Layout.column_major(2)


def test_what_must_not_copy_says_that_it_would(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    asked: list[Callable[[], Any]] = [
        lambda: xarr.asarray(VALUES, copy=False),
        lambda: xarr.from_dlpack(VALUES, copy=False),
        lambda: np.asarray(x, copy=False),
    ]
    for ask in asked:
        with pytest.raises(
            ValueError, match="copy=False is not possible: the memory of backend 'opaque' is not"
        ):
            ask()
    with pytest.raises(BufferError, match="copy=False is not possible from backend 'opaque' to the CPU"):
        np.from_dlpack(x, device="cpu", copy=False)


def test_dlpack_copies_to_the_cpu_where_it_is_asked_to(opaque: Backend) -> None:
    x = xarr.asarray(VALUES)
    assert x.__dlpack_device__() == (12, 0)
    for ask in (lambda: np.from_dlpack(x), lambda: x.__dlpack__(dl_device=(12, 0))):
        with (
            opaque.transfers() as counted,
            pytest.raises(BufferError, match=r"wanted dl_device=\(1, 0\) for a copy"),
        ):
            ask()
        assert counted.to_host == 0
    with pytest.raises(BufferError, match=r"got \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    assert_same(np.from_dlpack(x, device="cpu"), VALUES)
    assert_same(xarr.from_dlpack(Producer(x), device="numpy"), VALUES)


class Producer:
    """An object of another library that lends the memory of an Array."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_a_backend_may_lend_its_memory(opaque: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xarr.asarray(VALUES)
    asked: list[Any] = []

    def lend(self: Backend, *arguments: Any) -> object:
        asked.append(arguments)
        return VALUES.__dlpack__(max_version=(1, 0))

    monkeypatch.setattr(Backend, "to_dlpack", lend)
    (x + 1).__dlpack__(stream=7, max_version=(1, 0), copy=False)
    ((buffer, *options),) = asked
    assert_same(opaque.to_host(buffer), VALUES + 1)
    assert options == [7, (1, 0), False]


def catch(look: Callable[..., Any], *arguments: Any) -> tuple[type[BaseException], str, list[str]]:
    """The class, the text and the lines of the error that `look` raises.

    A note begins with the type of what failed, in which an engine counts what it added to a loop.
    """
    with pytest.raises((IndexError, np.linalg.LinAlgError)) as caught:
        look(*arguments)
    notes = getattr(caught.value, "__notes__", [])
    return caught.type, str(caught.value), [note.partition("built at")[2] for note in notes]


#: Programs over x and the indices i, of which one is out of bounds.
FAILING: dict[str, Callable[[Array, Array], Array]] = {
    "read": lambda x, i: x[i],
    "and computed on": lambda x, i: xarr.exp(x[i]).sum() + 1,
    "write": lambda x, i: x.at[i].set(0.0),
    "in a loop": lambda x, i: lax.fori_loop(0, 3, lambda k, c: c + x[i[k]], x[0]),
    "in a branch": lambda x, i: lax.cond(x.sum() > 3, lambda x, i: x[i], lambda x, i: x[0 * i], x, i),
    "take_along_axis": lambda x, i: xarr.take_along_axis(
        x, xarr.broadcast_to(i[:, None], (len(i), x.shape[1])), 0
    ),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("program", FAILING.values(), ids=FAILING)
@pytest.mark.usefixtures("recorded")
def test_an_index_out_of_bounds_is_named_where_the_value_is_looked_at(
    opaque: Backend, program: Callable[[Array, Array], Array], jitted: bool
) -> None:
    run = xarr.jit(program) if jitted else program
    for bad in ([0, 7, 1], [-9, 7, 1]):
        # Where the values are there, the index itself is refused when it is written: they are not yet.
        pending = xarr.asarray(VALUES, device="numpy"), xarr.asarray(bad, device="numpy") + 0
        wanted = catch(lambda arrays: np.asarray(run(*arrays)), pending)
        assert wanted[2]
        x, i = xarr.asarray(VALUES), xarr.asarray(bad) + 0
        for _ in range(3):
            with opaque.transfers() as counted:
                result = run(x, i)
                xarr.evaluate(result)
            assert (counted.from_host, counted.to_host) == (0, 0)
            for look in (np.asarray, str, Array.tolist, lambda y: np.asarray(y * 2), lambda y: y.to("numpy")):
                assert catch(look, result) == wanted
        good = xarr.asarray([0, 2, 1])
        assert_same(np.asarray(run(x, good)), np.asarray(run(pending[0], good.to("numpy"))))


def test_a_value_that_hangs_on_no_failed_check_can_be_looked_at(opaque: Backend) -> None:
    x, i = xarr.asarray(VALUES), xarr.asarray([0, 7]).evaluate()
    twice = x * 2
    bad = twice[i]
    beside = twice + 1
    xarr.evaluate(bad + beside[:2], bad)
    assert_same(np.asarray(twice), VALUES * 2)
    assert_same(np.asarray(beside), VALUES * 2 + 1)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        np.asarray(bad)
    later = bad + 1, beside + 1
    xarr.evaluate(later)
    assert_same(np.asarray(later[1]), VALUES * 2 + 2)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        np.asarray(later[0])


@pytest.mark.parametrize("look", [np.asarray, Array.tolist, np.from_dlpack, str])
def test_frames_of_xarr_end_where_the_value_is_looked_at(opaque: Backend, look: Callable[[Any], Any]) -> None:
    bad = xarr.asarray(VALUES)[xarr.asarray([7])]
    with pytest.raises(IndexError) as caught:
        look(bad)
    names = {frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)}
    assert not names & {"read", "fail", "to_host"}


def test_a_flag_is_read_once(opaque: Backend) -> None:
    x, i = xarr.asarray(VALUES), xarr.asarray([0, 2])
    result = x[i]
    assert transfers(opaque, lambda: np.asarray(result)) == (0, 2)
    assert transfers(opaque, lambda: np.asarray(result)) == (0, 1)
    assert transfers(opaque, lambda: np.asarray(x + 1)) == (0, 1)
    assert not check_flags.flags_of([result._node])


def test_a_singular_system_is_told_at_once(opaque: Backend) -> None:
    with pytest.raises(np.linalg.LinAlgError):
        xarr.linalg.inv(xarr.zeros((2, 2)))
    inverse = xarr.jit(xarr.linalg.inv)
    singular = inverse(xarr.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        np.asarray(singular)
    assert_same(np.asarray(inverse(xarr.eye(2))), np.eye(2))


# --- programs that are kept ----------------------------------------------------------------------------


@pytest.mark.usefixtures("fused")
def test_programs_are_kept_by_the_options_that_their_backend_names(
    opaque: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    compile_graph = Backend.compile
    monkeypatch.setattr(
        Backend, "compile", lambda self, graph: compiled.append(graph) or compile_graph(self, graph)
    )
    x = xarr.asarray(np.arange(7.0))

    def programs_made(jitted: Any) -> int:
        before = len(compiled)
        xarr.evaluate(xarr.exp(x) * 3 + 1, jitted(x))
        return len(compiled) - before

    for options, made in ((), 0), (("fusion",), 2):
        monkeypatch.setattr(Backend, "options", options)
        jitted = xarr.jit(lambda x: x * 3 + 1)
        assert programs_made(jitted) == 2
        with xarr.config(fusion="off"):
            assert programs_made(jitted) == made
            assert programs_made(jitted) == 0


def test_the_backend_says_how_large_its_programs_are(
    opaque: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(nbytes=1000)
    monkeypatch.setattr(evaluation, "_programs", programs)
    monkeypatch.setattr(Backend, "program_nbytes", lambda self, graph: 300)
    x = xarr.asarray(VALUES)
    for number in range(5):
        xarr.evaluate(x[:, number % 4] + number, xarr.sum(x[: number % 3 + 1]))
    assert len(programs) == 3
    assert programs.nbytes_kept == 900


# --- two devices ----------------------------------------------------------------------------------------


def test_each_device_computes_what_lies_on_it(opaque: Backend) -> None:
    first, second = xarr.asarray(VALUES), xarr.asarray(VALUES, device="opaque:1")
    assert (first.device, second.device, second.backend) == ("opaque", "opaque:1", "opaque")
    assert "backend=opaque:1" in repr(second)
    for x in (first, second):
        for result in (x + 1, xarr.jit(lambda x: x + 1)(x), x[1:], x[[0, 2]]):
            assert result.device == x.device
            assert_same(np.asarray(result), np.asarray(result.to("numpy")))
    with xarr.use_backend("opaque:1"):
        assert (xarr.asarray(VALUES) * 2).device == "opaque:1"
        assert xarr.zeros(3).evaluate().device == "opaque:1"
        assert xarr.config.backend == "opaque:1"
    assert xarr.get_backend("opaque:0") is opaque
    assert pickle.loads(pickle.dumps(second)).device == "opaque:1"


def test_one_program_is_made_for_each_device(opaque: Backend) -> None:
    jitted = xarr.jit(lambda x, n: xarr.sum(x * n + 1))
    for _ in range(3):
        for device in ("opaque", "opaque:1"):
            x = xarr.asarray(VALUES, device=device)
            assert transfers(opaque, lambda x=x: jitted(x, 2.0)) == (0, 0)
            assert transfers(opaque, lambda x=x: xarr.sum(x * 2.0 + 1)) == (0, 0)
            assert jitted(x, 2.0).device == device


def test_devices_do_not_mix_and_move_without_the_host(opaque: Backend) -> None:
    first, second = xarr.asarray(VALUES), xarr.asarray(VALUES, device="opaque:1")
    with pytest.raises(BackendError, match=r'opaque and opaque:1; move one, e.g. x.to\("opaque"\)'):
        first + second
    with opaque.transfers() as counted:
        total = first + second.to("opaque")
        xarr.evaluate(total, first.to_device("opaque:1"), xarr.asarray(second, device="opaque"))
    assert (counted.from_host, counted.to_host, counted.between) == (0, 0, 3)
    assert_same(np.asarray(total), VALUES * 2)
    assert second.to("opaque:1") is second
    moved = second.to("numpy").to("opaque:1")
    assert (moved.device, moved.backend) == ("opaque:1", "opaque")
    assert_same(np.asarray(moved), VALUES)


def test_what_is_on_no_device_goes_along(opaque: Backend) -> None:
    second = xarr.asarray(VALUES, device="opaque:1")
    for beside in (VALUES, VALUES.tolist()):
        result = second + beside
        assert result.device == "opaque:1"
        assert_same(np.asarray(result), VALUES * 2)
    # A sum of lists belongs nowhere, wherever it was computed.
    total = xarr.add(VALUES.tolist(), 1.0)
    for device in ("opaque", "opaque:1"):
        x = xarr.asarray(VALUES, device=device)
        assert_same(np.asarray(x + total), VALUES * 2 + 1)
        total.evaluate()


def test_a_device_that_is_not_there_is_refused_by_name(opaque: Backend) -> None:
    with pytest.raises(BackendError, match="backend 'opaque' has no device 2, only opaque, opaque:1"):
        xarr.zeros(3, device="opaque:2")
    with pytest.raises(BackendError, match="backend 'numpy' has no device 1, only cpu"):
        xarr.zeros(3, device="numpy:1")
    assert xarr.zeros(3, device="numpy:0").backend == "numpy"
    with pytest.raises(BackendError, match="no backend called 'metal:1'"):
        xarr.zeros(3, device="metal:1")


def test_a_failed_check_is_told_on_each_device(opaque: Backend) -> None:
    for device in ("opaque", "opaque:1"):
        x, i = xarr.asarray(VALUES, device=device), xarr.asarray([0, 7], device=device)
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            np.asarray(x[i])
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            np.asarray(xarr.lower(lambda x, i: x[i], x, i).compile()(x, i))
