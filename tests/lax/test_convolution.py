"""Convolutions of every form: against jax.lax by random configurations, both backends, refusals by label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import run
from tests.support import fuzz
from tests.support.fuzz import Drawn
from tests.support.graphs import convolution, graph, node, tensor
from tests.xla import run_stablehlo
from xarr import lax
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.types import Ints

jax.config.update("jax_enable_x64", True)

Array = np.ndarray[Any, Any]

FLOATS = ("float32", "float64", "bfloat16", "float16")
TYPES = (*FLOATS, "complex64", "complex128", "int8", "int32", "uint16", "int64")


def values(shape: Ints, dtype: str, seed: int) -> Array:
    draw = np.random.default_rng(seed)
    element = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if element.kind in "iu":
        return draw.integers(-100 if element.kind == "i" else 0, 100, shape).astype(element)
    values = draw.normal(size=shape)
    return (values + 1j * draw.normal(size=shape) if element.kind == "c" else values).astype(element)


def close(got: Any, wanted: Any, lhs: Array, rhs: Array, terms: int) -> None:
    """Equal for integers; else within the error of that many products summed in any order."""
    actual, exact = np.asarray(got), np.asarray(wanted)
    assert (actual.dtype, actual.shape) == (exact.dtype, exact.shape)
    if actual.dtype.kind in "iub":
        assert_same(actual, exact)
        return
    scale = float(np.abs(lhs.astype(complex)).max(initial=0) * np.abs(rhs.astype(complex)).max(initial=0))
    eps = float(ml_dtypes.finfo(actual.real.dtype).eps)
    difference = np.abs(actual.astype(complex) - exact.astype(complex)).max(initial=0)
    assert difference <= 2 * eps * (terms + 1) * scale


# --- random configurations ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A call of conv_general_dilated."""

    lhs: Ints
    rhs: Ints
    strides: Ints
    padding: Any
    lhs_dilation: Ints
    rhs_dilation: Ints
    numbers: tuple[str, str, str]
    groups: tuple[int, int]
    dtype: str

    def apply(self, module: Any, lhs: Any, rhs: Any) -> Any:
        return module.conv_general_dilated(
            lhs,
            rhs,
            self.strides,
            self.padding,
            self.lhs_dilation,
            self.rhs_dilation,
            self.numbers,
            feature_group_count=self.groups[0],
            batch_group_count=self.groups[1],
        )


def _shuffle(random: Random, letters: str, rank: int) -> str:
    names = [*letters, *"0123"[:rank]]
    random.shuffle(names)
    return "".join(names)


def _shape(spec: str, sizes: dict[str, int]) -> Ints:
    return tuple(sizes[name] for name in spec)


def draw_case(random: Random) -> Case:
    rank = random.choice([0, 1, 1, 2, 2, 3])
    feature_groups, batch_groups = random.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)])
    inputs, outputs = random.randint(1, 2), random.randint(1, 2) * feature_groups * batch_groups
    spatial = [random.randint(0 if random.random() < 0.05 else 1, 6) for _ in range(rank)]
    kernel = [random.randint(1, 3) for _ in range(rank)]
    names = [_shuffle(random, letters, rank) for letters in ("NC", "OI", "NC")]
    batch = random.choice([1, 2, 3]) * batch_groups
    where = {str(at): size for at, size in enumerate(spatial)}
    lhs = _shape(names[0], {"N": batch, "C": inputs * feature_groups, **where})
    rhs = _shape(names[1], {"O": outputs, "I": inputs, **{str(at): size for at, size in enumerate(kernel)}})

    def some(low: int, high: int) -> Ints:
        return tuple(random.randint(low, high) for _ in range(rank))

    dilated = random.random() < 0.3
    pads = [(random.randint(-1, 3), random.randint(-1, 3)) for _ in range(rank)]
    # JAX refuses padding that cuts off more than there is.  Spatial settings are in the kernel's order.
    sizes = [where[name] for name in names[1] if name in where]
    pads = [pair if size + sum(pair) >= 0 else (0, 0) for pair, size in zip(pads, sizes, strict=True)]
    named = random.choice(["SAME", "VALID", "SAME_LOWER"])
    padding = named if not dilated and random.random() < 0.3 else pads
    return Case(
        lhs,
        rhs,
        some(1, 3),
        padding,
        some(1, 3) if dilated else (1,) * rank,
        some(1, 2),
        (names[0], names[1], names[2]),
        (feature_groups, batch_groups),
        random.choice(TYPES),
    )


def draw_call(random: Random) -> Drawn:
    case, seed = draw_case(random), random.randrange(2**32)
    lhs, rhs = values(case.lhs, case.dtype, seed), values(case.rhs, case.dtype, seed + 1)

    def compare(got: Any, wanted: Any) -> None:
        close(got, wanted, lhs, rhs, int(np.prod(case.rhs)))

    return Drawn(lambda module, x: case.apply(module, *x), (lhs, rhs), name=repr(case), compare=compare)


@pytest.mark.parametrize("seed", fuzz.seeds(2))
def test_random_convolutions_agree_with_jax(seed: int) -> None:
    fuzz.check_with_jax("Conv", draw_call, seed)


@pytest.mark.parametrize("seed", fuzz.seeds(4))
def test_the_reference_backend_agrees(seed: int) -> None:
    for row in fuzz.draw_calls("Conv on the reference", draw_call, seed, 12):
        with xarr.use_backend("reference"):
            slow = np.asarray(row.call(lax, tuple(row.operands)))
        with fuzz.showing(row.__repr__):
            assert row.compare is not None
            row.compare(row.call(lax, tuple(row.operands)), slow)


def spoilt(random: Random) -> Case:
    """A configuration with one thing changed, which may still be right."""
    case = draw_case(random)
    changes: list[Callable[[], Case]] = [
        lambda: replace(case, strides=(*case.strides, 1)),
        lambda: replace(case, strides=(0, *case.strides[1:])),
        lambda: replace(case, lhs_dilation=(0, *case.lhs_dilation[1:])),
        lambda: replace(case, rhs_dilation=case.rhs_dilation[1:]),
        lambda: replace(case, groups=(case.groups[0] + 1, case.groups[1])),
        lambda: replace(case, groups=(case.groups[0], case.groups[1] + 1)),
        lambda: replace(case, groups=(0, 1)),
        lambda: replace(case, groups=(2, 2)),
        lambda: replace(case, numbers=(case.numbers[1], case.numbers[0], case.numbers[2])),
        lambda: replace(case, rhs=(*case.rhs[:-1], case.rhs[-1] + 1)),
        lambda: replace(case, rhs=case.rhs[1:]),
        lambda: replace(case, padding=[(1, 1)] * (len(case.strides) + 1)),
        lambda: replace(case, padding="FULL"),
    ]
    return random.choice(changes)()


@pytest.mark.parametrize("seed", fuzz.seeds(1))
def test_what_jax_refuses_is_refused(seed: int) -> None:
    def calls() -> Iterator[tuple[fuzz.Call, Any, str]]:
        random = fuzz.generator("Conv changed", seed)
        for case in (spoilt(random) for _ in range(100)):
            operands = tuple(np.zeros(shape, np.float32) for shape in (case.lhs, case.rhs))
            yield lambda module, x, case=case: case.apply(module, *x), operands, repr(case)

    assert fuzz.check_refusals(calls()) > 40


# --- particular ones ---------------------------------------------------------------------------------


def test_conv_and_padding_by_numbers() -> None:
    lhs, rhs = values((2, 3, 8, 7), "float32", 0), values((4, 3, 3, 2), "float32", 1)
    close(lax.conv(lhs, rhs, (2, 1), "SAME"), jax.lax.conv(lhs, rhs, (2, 1), "SAME"), lhs, rhs, 18)
    arguments = ((1, 2), [(1, 0), (-1, 2)], (2, 1), (1, 3))
    close(
        lax.conv_with_general_padding(lhs, rhs, *arguments),
        jax.lax.conv_with_general_padding(lhs, rhs, *arguments),
        lhs,
        rhs,
        18,
    )


@pytest.mark.parametrize("transpose_kernel", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (2, 2)]], ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
def test_transposed(strides: Ints, padding: Any, transpose_kernel: bool) -> None:
    lhs = values((2, 4, 5, 3), "float32", 0)
    rhs = values((3, 2, 4, 3) if transpose_kernel else (3, 2, 3, 4), "float32", 1)
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "transpose_kernel": transpose_kernel}
    wanted = jax.lax.conv_transpose(lhs, rhs, strides, padding, **options)
    close(lax.conv_transpose(lhs, rhs, strides, padding, **options), wanted, lhs, rhs, 18)


def test_depthwise() -> None:
    lhs, rhs = values((2, 8, 6, 6), "float32", 0), values((16, 1, 3, 3), "float32", 1)
    options = {"feature_group_count": 8}
    wanted = jax.lax.conv_general_dilated(lhs, rhs, (1, 1), "SAME", **options)
    close(lax.conv_general_dilated(lhs, rhs, (1, 1), "SAME", **options), wanted, lhs, rhs, 9)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_window_reversal_reads_the_kernel_from_its_end(backend: str) -> None:
    lhs, rhs = values((1, 1, 6), "float64", 0), values((1, 1, 3), "float64", 1)
    with xarr.use_backend(backend):
        got = lax.conv_general_dilated(lhs, rhs, (1,), [(2, 2)], window_reversal=(True,))
        np.testing.assert_allclose(np.asarray(got)[0, 0], np.convolve(lhs[0, 0], rhs[0, 0]), rtol=1e-14)
    op = convolution("bf0", "oi0", "bf0", window_reversal=(True,), padding=((2, 2),))
    text = graph(
        lambda a, b: node(op, a, b), tensor(np.float32, 1, 1, 6), tensor(np.float32, 1, 1, 3)
    ).to_text()
    narrow = lhs.astype(np.float32), rhs.astype(np.float32)
    close(run(op, *narrow, backend="numpy"), run_stablehlo(text, *narrow)[0], *narrow, 3)


def test_integers_wrap_and_large_ones_stay_exact() -> None:
    lhs = np.full((1, 4, 3), 2**62 + 3, np.int64)
    rhs = np.full((2, 4, 2), 7, np.int64)
    wanted = jax.lax.conv_general_dilated(lhs, rhs, (1,), "VALID")
    assert_same(lax.conv_general_dilated(lhs, rhs, (1,), "VALID"), np.asarray(wanted))
    narrow = np.full((1, 4, 3), 100, np.int8)
    kernel = np.full((2, 4, 2), 100, np.int8)
    wanted = jax.lax.conv_general_dilated(narrow, kernel, (1,), "VALID")
    assert_same(lax.conv_general_dilated(narrow, kernel, (1,), "VALID"), np.asarray(wanted))
    wide = {"preferred_element_type": np.int32}
    wanted = jax.lax.conv_general_dilated(narrow, kernel, (1,), "VALID", **wide)
    assert_same(lax.conv_general_dilated(narrow, kernel, (1,), "VALID", **wide), np.asarray(wanted))


def test_nan_and_infinity_stay_where_they_belong() -> None:
    lhs = np.zeros((1, 1, 7), np.float32)
    lhs[0, 0, 3] = np.nan
    got = np.asarray(lax.conv_general_dilated(lhs, np.ones((1, 1, 3), np.float32), (1,), "SAME"))
    assert_same(np.isnan(got[0, 0]), np.array([False, False, True, True, True, False, False]))


def test_large_images_do_not_fill_the_memory() -> None:
    """Windows of the whole would take 0.6 GB."""
    lhs, rhs = np.ones((1, 1, 4096, 1024), np.float32), np.ones((1, 1, 6, 6), np.float32)
    got = lax.conv_general_dilated(lhs, rhs, (1, 1), "VALID")
    assert_same(got, np.full((1, 1, 4091, 1019), 36, np.float32))


# --- rules -------------------------------------------------------------------------------------------

LHS, RHS = (4, 6, 8), (6, 6, 3)


def assert_refused(label: str, lhs: Ints = LHS, rhs: Ints = RHS, **changes: Any) -> None:
    op = convolution("bf0", "oi0", "bf0", **changes)
    operands = [node(ops.Iota(tensor(np.float32, *shape), 0)) for shape in (lhs, rhs)]
    with pytest.raises(ShapeError, match=rf"\[{label}\]"):
        node(op, *operands)


def test_convolution_c1() -> None:
    assert_refused("C1", lhs=(4, 6))
    with pytest.raises(ShapeError, match=r"conv_general_dilated \[C1\]|ranks"):
        lax.conv_general_dilated(np.zeros((4, 6)), np.zeros((6, 6, 3)), (1,), "VALID")


def test_convolution_c2_c3() -> None:
    assert_refused("C2", window_strides=(1, 1))
    assert_refused("C3", window_strides=(0,))


def test_convolution_c4() -> None:
    assert_refused("C4", padding=())
    assert_refused("C4", padding=((0, 0), (0, 0)))


def test_convolution_c5_c6_c7_c8() -> None:
    assert_refused("C5", lhs_dilation=())
    assert_refused("C6", lhs_dilation=(0,))
    assert_refused("C7", rhs_dilation=(1, 1))
    assert_refused("C8", rhs_dilation=(-1,))


def test_convolution_c9() -> None:
    assert_refused("C9", window_reversal=())


def test_convolution_c10() -> None:
    assert_refused("C10", batch_group_count=3)


def test_convolution_c11() -> None:
    assert_refused("C11", feature_group_count=4)


def test_convolution_c12_c13() -> None:
    assert_refused("C12", lhs_spec=(0, 1))
    assert_refused("C13", lhs_spec=(0, 1, 1))


def test_convolution_c14() -> None:
    assert_refused("C14", rhs=(6, 5, 3))


def test_convolution_c15_c16() -> None:
    assert_refused("C15", rhs=(5, 6, 3), batch_group_count=2)
    assert_refused("C16", rhs=(5, 3, 3), feature_group_count=2)


def test_convolution_c17_c18_c19_c20() -> None:
    assert_refused("C17", rhs_spec=(0, 1))
    assert_refused("C18", rhs_spec=(0, 1, 3))
    assert_refused("C19", out_spec=(0, 1, 2, 3))
    assert_refused("C20", out_spec=(2, 2, 0))


def test_convolution_c21_c22_c23() -> None:
    assert_refused("C21", feature_group_count=0)
    assert_refused("C22", batch_group_count=0)
    assert_refused("C23", rhs=(6, 3, 3), feature_group_count=2, batch_group_count=2)


def test_convolution_c23() -> None:
    assert_refused("C23", rhs=(6, 3, 3), feature_group_count=2, batch_group_count=2)


def test_convolution_c24() -> None:
    assert_refused("C24", precision=("DEFAULT",))


def test_convolution_c25() -> None:
    assert_refused("C25", rhs=(6, 6, 0))


def test_convolution_c27() -> None:
    with pytest.raises(DTypeError, match=r"conv_general_dilated \[C27\]"):
        lax.conv_general_dilated(np.zeros(LHS), np.zeros(RHS, np.float32), (1,), "VALID")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (("NC", "OI0", "NC0"), "NC"),
        (("NC0", "OI0", "NCC"), "NCC"),
        (("NC0", "OI1", "NC0"), "OI1"),
        (("NHW", "OI0", "NC0"), "NHW"),
        ("NCH", "dimension_numbers"),
    ],
    ids=str,
)
def test_dimension_numbers_that_do_not_fit(numbers: Any, message: str) -> None:
    with pytest.raises((InputError, ShapeError), match=message):
        lax.conv_general_dilated(np.zeros(LHS), np.zeros(RHS), (1,), "VALID", dimension_numbers=numbers)


def test_padding_by_name_and_base_dilation_exclude_each_other() -> None:
    with pytest.raises(InputError, match="lhs_dilation"):
        lax.conv_general_dilated(np.zeros(LHS), np.zeros(RHS), (1,), "SAME", lhs_dilation=(2,))


def test_a_program_spelled_out_gives_the_same() -> None:
    lhs, rhs = values((2, 4, 6), "float32", 0), values((4, 2, 3), "float32", 1)

    def program(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (2,), [(1, -1)], (2,), (1,), feature_group_count=2)

    assert_same(xarr.make_explicit(program, lhs, rhs)(lhs, rhs), program(lhs, rhs))
