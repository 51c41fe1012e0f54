"""The kernel of a convolution as a matrix: it is read where it lies if its features lie in that order."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr_numpy.ops import convolution


def as_gohw(kernel: np.ndarray, spec: str) -> np.ndarray:
    """A kernel whose dimensions have these names as one of (groups, output, input, height, width)."""
    return kernel.transpose([spec.index(name) for name in "oihw"])[None]


@pytest.mark.parametrize(
    ("spec", "is_view"), [("hwio", True), ("oihw", False), ("hwoi", False), ("ohwi", True)]
)
def test_kernel_is_copied_only_where_its_features_lie_in_another_order(spec: str, is_view: bool) -> None:
    sizes = {"o": 5, "i": 4, "h": 3, "w": 2}
    kernel = np.arange(120, dtype=np.float32).reshape([sizes[name] for name in spec])
    parts = as_gohw(kernel, spec)
    matrix = convolution._kernel_matrix(parts, last=True)
    np.testing.assert_array_equal(matrix, parts.transpose(0, 3, 4, 2, 1).reshape(1, 24, 5))
    assert np.shares_memory(matrix, kernel) == is_view


@pytest.mark.parametrize("spec", ["OIHW", "OHWI", "HWOI"])
@pytest.mark.parametrize("reversal", [False, True])
def test_kernels_in_each_order_give_the_same(spec: str, reversal: bool) -> None:
    draw = np.random.default_rng(0)
    # Whole numbers: sums are exact in whatever order.
    x = draw.integers(-4, 4, (2, 9, 8, 20)).astype(np.float32)
    kernel = draw.integers(-4, 4, (3, 2, 20, 24)).astype(np.float32)

    def convolve(spec: str) -> xarr.Array:
        turned = kernel.transpose(["HWIO".index(name) for name in spec])
        return xarr.lax.conv_general_dilated(
            xarr.asarray(x),
            xarr.asarray(np.ascontiguousarray(turned)),
            (2, 1),
            [(1, 1), (0, 1)],
            dimension_numbers=("NHWC", spec, "NHWC"),
            window_reversal=(reversal, reversal),
        )

    assert_same(convolve(spec), convolve("HWIO"))
