"""Convolutions over dynamic sizes, against jax.lax on the live part and XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jlax

from tests.dynamic_cases import Case
from tests.support.answers import recorded
from tests.support.dynamic import check_on, check_with_xla, late
from xarr import lax
from xarr.errors import ShapeError

jax.config.update("jax_enable_x64", True)

Host = np.ndarray[Any, Any]


@recorded
def _by_jax(x: Host, kernel: Host, geometry: tuple[Any, ...], options: list[tuple[str, Any]]) -> Any:
    return jlax.conv_general_dilated(x, kernel, *geometry, **dict(options))


def _convolve(*geometry: Any, **options: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def oracle(x: Host, kernel: Host) -> Host:
        return np.asarray(_by_jax(x, kernel, geometry, list(options.items()))[0])

    return lambda x, kernel: lax.conv_general_dilated(x, kernel, *geometry, **options), oracle


UNPADDED = "it leaves explicit padding out of the sizes"
CASES = [
    Case("batch", ("n 2 4 4", "3 2 2 2"), *_convolve((1, 1), "SAME")),
    Case("output_features", ("1 2 4 4", "n 2 2 2"), *_convolve((1, 2), "VALID"), unlike_xla="unimplemented"),
    Case("features", ("1 n 4", "3 n 2"), *_convolve((1,), "VALID")),
    Case(
        "features_of_the_kernel",
        ("1 5 4", "3 n 2"),
        _convolve((1,), "VALID")[0],
        lambda x, k: _convolve((1,), "VALID")[1](x[:, : k.shape[1]], k),
    ),
    Case(
        "spatial",
        ("2 1 n", "1 1 2"),
        *_convolve((1,), "VALID"),
        is_defined=lambda sizes: sizes["n"] > 1,
        unlike_xla="unimplemented",
    ),
    Case(
        "spatial_padded",
        ("1 2 n m", "2 2 2 3"),
        *_convolve((2, 1), ((1, 2), (0, 2))),
        is_defined=lambda sizes: sizes["n"] and sizes["m"],
        unlike_xla=UNPADDED,
    ),
    Case(
        "spatial_dilated",
        ("1 1 n", "1 1 3"),
        *_convolve((2,), ((3, 2),), (2,), (1,)),
        is_defined=lambda sizes: sizes["n"],
        unlike_xla=UNPADDED,
    ),
    Case(
        "spatial_reversed_order",
        ("n 2 3", "2 3 2"),
        *_convolve((1,), ((1, 1),), dimension_numbers=("WNC", "WIO", "WNC")),
        is_defined=lambda sizes: sizes["n"],
        unlike_xla=UNPADDED,
    ),
    Case(
        "all",
        ("n k m", "3 k 2"),
        *_convolve((1,), ((0, 1),)),
        is_defined=lambda sizes: sizes["m"],
        unlike_xla=UNPADDED,
    ),
]


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_jax_on_the_live_part(case: Case, backend: str) -> None:
    check_on(case, backend, poisoned=True)


@pytest.mark.parametrize("case", [case for case in CASES if not case.unlike_xla], ids=lambda case: case.name)
def test_as_xla(case: Case) -> None:
    check_with_xla(case)


@pytest.mark.parametrize(
    ("lhs", "rhs", "options"),
    [
        pytest.param(("1 1 4"), ("1 1 n"), {}, id="kernel"),
        pytest.param(("1 n 4"), ("5 1 2"), {"feature_group_count": 5}, id="feature-groups"),
        pytest.param(("n 1 4"), ("5 1 2"), {"batch_group_count": 5}, id="batch-groups"),
        pytest.param(("1 5 4"), ("n 1 2"), {"feature_group_count": 5}, id="kernel-of-groups"),
    ],
)
def test_dynamic_d8(lhs: str, rhs: str, options: dict[str, int]) -> None:
    case = Case("", (lhs, rhs), lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", **options), np.add)
    with pytest.raises(ShapeError, match=r"conv_general_dilated \[D8\]: a kernel"):
        case.apply(case.arrays(), {"n": late(2)})
