"""Random calls of every operation of XLA's page against jax.lax, or against XLA given the text that xarr prints."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import jax
import numpy as np
import pytest

from tests.compare import assert_same
from tests.support import fuzz
from tests.support.checkout import CHECKOUT
from tests.support.draws import core, indexing, numbers, operations, windows
from tests.support.draws.operations import dtype_of, shape_of, values
from tests.support.fuzz import Draw, Drawn
from xarr import lax

#: The functions of these are those of jax.lax too.
WITH_JAX: Final[dict[str, Draw]] = core.DRAWS | numbers.WITH_JAX | windows.DRAWS
#: XLA runs what xarr prints of these; of windows, the text too.
WITH_XLA: Final[dict[str, Draw]] = indexing.WITH_XLA | numbers.WITH_XLA

#: Operations of the page that the draw of another calls, or that `tests/lax/test_convolution.py` draws.
DRAWN_WITH: Final = {
    **dict.fromkeys(("BatchNormGrad", "BatchNormInference", "BatchNormTraining"), "BatchNorm"),
    "Dot": "DotGeneral",
}
CONVOLUTIONS: Final = {"Conv", "ConvWithGeneralPadding"}
#: Compared in this file with something else than results of XLA.
OTHERWISE: Final = {
    "CustomCall": "test_random_custom_calls",
    "RngNormal": "test_random_draws_of_the_process",
    "RngUniform": "test_random_draws_of_the_process",
}
#: Collectives and host transfers have an issue of their own.
LATER: Final = {
    *("AfterAll", "AllGather", "AllReduce", "AllToAll", "CollectivePermute", "CrossReplicaSum", "Infeed"),
    *("Recv", "ReduceScatter", "ReplicaId", "Send"),
}


def page() -> list[str]:
    lines = (CHECKOUT / "docs" / "operations.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines[1:]]


def test_every_operation_of_the_page_is_drawn_somewhere() -> None:
    drawn = set(WITH_JAX) | set(WITH_XLA) | set(operations.WITH_JAX) | set(operations.WITH_XLA)
    assert set(DRAWN_WITH.values()) <= drawn
    groups = [drawn & set(page()), set(DRAWN_WITH), CONVOLUTIONS, set(OTHERWISE), LATER]
    assert set(page()) == set().union(*groups)
    assert len(page()) == sum(map(len, groups)) == 99


def test_otherwise_means_a_test_of_this_file() -> None:
    assert all(name in globals() for name in OTHERWISE.values())


def test_a_normal_run_takes_one_of_the_last_with_all_others() -> None:
    rows = fuzz.one_of_last("abc", range(3), "xyz")
    normal = [row.values for row in rows if not row.marks]
    assert len({row.values for row in rows}) == len(rows) == 27 and len(normal) == 9
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert len({(row[first], row[second]) for row in normal}) == 9


def test_a_normal_run_takes_one_value_in_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "_is_thorough", lambda: False)
    parts = [fuzz.one_in(3, "abcdefgh", number) for number in range(4)]
    assert parts == ["adg", "beh", "cf", "adg"]
    monkeypatch.setattr(fuzz, "_is_thorough", lambda: True)
    assert fuzz.one_in(3, "abc", 1) == "abc"


# --- against JAX and XLA ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", fuzz.seeds(2))
@pytest.mark.parametrize("name", WITH_JAX)
def test_calls_agree_with_jax(name: str, seed: int) -> None:
    backends = ("numpy", "reference") if name in windows.DRAWS else ("numpy",)
    fuzz.check_with_jax(name, WITH_JAX[name], seed, backends)


@pytest.mark.parametrize("seed", fuzz.seeds(1))
@pytest.mark.parametrize("name", operations.WITH_JAX)
def test_other_calls_agree_with_jax(name: str, seed: int) -> None:
    fuzz.check_with_jax(name, operations.WITH_JAX[name], seed, count=20 if seed == 0 else fuzz.COUNT)


@pytest.mark.parametrize("seed", fuzz.seeds(2))
@pytest.mark.parametrize("name", WITH_XLA)
def test_calls_agree_with_xla(name: str, seed: int) -> None:
    fuzz.check_with_xla(name, WITH_XLA[name], seed)


@pytest.mark.parametrize("seed", fuzz.seeds(1))
@pytest.mark.parametrize("name", {**operations.WITH_XLA, **windows.DRAWS})
def test_other_calls_agree_with_xla(name: str, seed: int) -> None:
    draw = {**operations.WITH_XLA, **windows.DRAWS}[name]
    fuzz.check_with_xla(name, draw, seed, count=20 if seed == 0 else fuzz.COUNT)


def test_a_wrong_result_is_noticed() -> None:
    def draw(random: Random) -> Drawn:
        x = np.arange(3.0)
        return Drawn(
            lambda module, a: module.neg(*a) if module is lax else module.abs(*a), (x,), name="wrong"
        )

    with pytest.raises(AssertionError, match="numpy and XLA differ: wrong of float64\\[3\\]"):
        fuzz.check_with_jax("wrong", draw, 0, count=1)


# --- what must be refused -----------------------------------------------------------------------------

#: What xarr takes and jax.lax does not: see the last column of docs/operations.md.
WIDER: Final = {
    *("Add", "BitcastConvertType", "Mul", "Real", "Imag", "Sign", "Conditional(pred)"),
    *("Conditional(branch_index)", "While"),
}


@pytest.mark.parametrize("name", core.DRAWS)
def test_what_jax_refuses_of_core_is_refused(name: str) -> None:
    assert fuzz.check_refusals(fuzz.changed_calls(name, core.DRAWS[name], core.changes, 60)) > 2


@pytest.mark.parametrize("name", numbers.WITH_JAX)
def test_what_jax_refuses_of_numbers_is_refused(name: str) -> None:
    assert fuzz.check_refusals(fuzz.changed_calls(name, numbers.WITH_JAX[name], numbers.changes, 160)) > 40


@pytest.mark.parametrize("name", [name for name in operations.WITH_JAX if name not in WIDER | {"Iota"}])
def test_what_jax_refuses_is_refused(name: str) -> None:
    def plain() -> Iterator[tuple[fuzz.Call, Any, str]]:
        for call, operands, change in fuzz.changed_calls(
            name, operations.WITH_JAX[name], operations.changes, 40
        ):
            shapes = {np.shape(x) for x in operands}
            # Of several operands a scalar or a size of 1 stretches, as XlaBuilder has it.
            if len(shapes) == 1 or all(shape and 1 not in shape for shape in shapes):
                yield call, operands, change

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        fuzz.check_refusals(plain())


# --- what is compared with something else ------------------------------------------------------------


def test_random_custom_calls() -> None:
    """A registered function gets what it was given and returns what it declared."""
    random = Random(20)
    lax.register_custom_call("tests.fuzz", lambda *arrays, shift: tuple(np.roll(x, shift) for x in arrays))
    try:
        for _ in range(20):
            dtype = random.choice(("float32", "int64", "bool", "complex64"))
            arrays = [values(random, shape_of(random), dtype) for _ in range(random.randint(1, 3))]
            shapes, shift = [(x.shape, x.dtype) for x in arrays], random.randint(-3, 3)
            results = lax.custom_call("tests.fuzz", *arrays, result_types=shapes, attributes={"shift": shift})
            for mine, x in zip(results, arrays, strict=True):
                assert_same(mine, np.roll(x, shift))
    finally:
        lax.unregister_custom_call("tests.fuzz")


def test_random_draws_of_the_process() -> None:
    """Bounds and shapes are kept: the numbers are those of a generator of the process."""
    random = Random(20)
    for _ in range(20):
        shape, dtype = shape_of(random), random.choice(("float32", "float64"))
        low = dtype_of(dtype).type(random.uniform(-5, 5))
        high = dtype_of(dtype).type(float(low) + random.uniform(0.5, 5))
        uniform = np.asarray(lax.rng_uniform(low, high, shape))
        normal = np.asarray(lax.rng_normal(low, abs(high - low), shape))
        wanted = jax.eval_shape(lambda a, b, shape=shape: jax.lax.rng_uniform(a, b, shape), low, high)
        assert (uniform.dtype, uniform.shape) == (wanted.dtype, wanted.shape)
        assert (normal.dtype, normal.shape) == (wanted.dtype, wanted.shape)
        assert np.all((low <= uniform) & (uniform < high)) and np.all(np.isfinite(normal))
