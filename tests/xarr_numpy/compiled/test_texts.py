"""The loop programs of ten typical groups and their LLVM IR: what is emitted changes only on purpose.

After a change on purpose: `python -m tests.support.kernel_texts --update`, then read the difference.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.kernel_texts import CASES, SNAPSHOTS, texts

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    for suffix, text in texts(name).items():
        assert text == (SNAPSHOTS / f"{name}{suffix}").read_text()


def test_every_snapshot_is_compared() -> None:
    assert {path.name for path in SNAPSHOTS.iterdir()} == {
        f"{name}{suffix}" for name in CASES for suffix in (".loops", ".ll")
    }


def test_no_text_depends_on_the_order_of_a_set() -> None:
    first, second = (_print(seed) for seed in ("1", "2"))
    assert first == second
    assert all(f"# {name}.ll" in first for name in CASES)


def _print(seed: str) -> str:
    command = [sys.executable, "-m", "tests.support.kernel_texts"]
    path = os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
