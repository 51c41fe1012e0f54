"""Programs written for NumPy: with xarr's import they give NumPy's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.scripts import run_example

#: Each with arguments for a run of a second, also on the reference backend.
PROGRAMS = {
    "image_compression": {"size": 24, "ranks": (1, 3, 8)},
    "kalman_filter": {"steps": 12},
    "wave_equation": {"size": 16, "steps": 8},
    "kmeans": {"points": 40, "k": 4},
    "game_of_life": {"size": 14, "steps": 6},
}
XARR, NUMPY = "import xarr as np\n", "import numpy as np\n"


def solve(name: str, library: str) -> tuple[Any, ...]:
    """The results of the program with the line `library` for its import."""
    path = CHECKOUT / "examples" / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(XARR) == 1
    scope: dict[str, Any] = {"__name__": name}
    exec(compile(text.replace(XARR, library), str(path), "exec"), scope)
    result: tuple[Any, ...] = scope["solve"](**PROGRAMS[name])
    return result


@pytest.mark.implicit
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_import_alone_changes(name: str, backend: str) -> None:
    wanted = solve(name, NUMPY)
    with xarr.use_backend(backend):
        results = solve(name, XARR)
        assert len(results) == len(wanted)
        for one, other in zip(results, wanted, strict=True):
            assert type(one) is xarr.Array
            assert (one.shape, one.dtype) == (np.shape(other), np.asarray(other).dtype)
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-12)


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("image_compression", ["--size", "16", "--rank", "2"], "rank   2:  25.8% of the numbers"),
        ("kalman_filter", ["--steps", "5"], "mean error: "),
        ("wave_equation", ["--size", "10", "--steps", "3"], "after 3 steps"),
        ("kmeans", ["--points", "30", "--clusters", "3"], "10 points around"),
        ("game_of_life", ["--size", "12", "--steps", "2"], "cells live after 2 generations"),
    ],
    ids=list(PROGRAMS),
)
def test_the_program_runs_from_the_command_line(name: str, arguments: list[str], told: str) -> None:
    done = run_example(name, "--backend", "numpy", *arguments)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
