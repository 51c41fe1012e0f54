"""Jitted functions in pickles: by name where that is enough, else by value, once for each process."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.transforms import pickled_functions
from xarr.transforms.pickled_functions import is_named

cloudpickle = pytest.importorskip("cloudpickle")

pytestmark = pytest.mark.usefixtures("on_numpy")


@xarr.jit
def double(x: xarr.Array) -> xarr.Array:
    """Twice an array."""
    return x * 2


def _plain(x: xarr.Array) -> xarr.Array:
    return x + 1


renamed = xarr.jit(_plain)


@dataclass(frozen=True)
class Shift:
    """A pytree with a jitted method."""

    by: float

    @xarr.jit
    def add(self, x: xarr.Array) -> xarr.Array:
        """The array shifted."""
        return x + self.by


class Scale:
    """An object that is no pytree with a jitted method."""

    def __init__(self, by: float) -> None:
        self.by = by

    @xarr.jit
    def scale(self, x: xarr.Array) -> xarr.Array:
        """The array scaled."""
        return x * self.by


def test_functions_of_modules_are_pickled_by_name() -> None:
    assert is_named(double) and not is_named(renamed)
    for module in (pickle, cloudpickle):
        stream = module.dumps(double)
        assert len(stream) < 100 and pickle.loads(stream) is double


def test_functions_under_other_names_are_pickled_with_the_function() -> None:
    again = pickle.loads(pickle.dumps(renamed))
    assert again is renamed


def test_lambdas_are_pickled_by_cloudpickle_and_by_nothing_else() -> None:
    scale = xarr.asarray([1.0, 2.0, 3.0])
    f = xarr.jit(lambda x, n: x * scale + n, static_argnames="n")
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"lambda"):
        pickle.dumps(f)
    assert pickle.loads(cloudpickle.dumps(f)) is f
    assert copy.copy(f) is copy.deepcopy(f) is f


def test_a_process_that_receives_a_function_often_records_it_once(tmp_path: Path) -> None:
    f = xarr.jit(lambda x, n: x * 2 + n, static_argnums=1)
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(cloudpickle.dumps((f, np.arange(3.0) + number)))
    code = (
        "import pickle, pathlib, sys\n"
        "got = [pickle.loads(pathlib.Path(sys.argv[1], str(i)).read_bytes()) for i in range(3)]\n"
        "f = got[0][0]\n"
        "assert all(g is f for g, _ in got)\n"
        "for g, x in got: assert g(x, 1).tolist() == (x * 2 + 1).tolist()\n"
        "assert f.compilations == 1, f.compilations\n"
        "assert pickle.loads(__import__('cloudpickle').dumps(f)) is f\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_functions_that_nobody_holds_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled_functions, "_KEPT", 2)
    monkeypatch.setattr(pickled_functions, "_received", OrderedDict())
    streams = [cloudpickle.dumps(xarr.jit(lambda x, n=n: x + n)) for n in range(4)]
    first = [id(pickle.loads(each)) for each in streams[2:]]
    assert [id(pickle.loads(each)) for each in streams[2:]] == first
    assert len(pickled_functions._received) == 2


def test_equal_functions_have_equal_tokens() -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    f, g = (xarr.jit(lambda x: x + 1) for _ in range(2))
    assert tokenize(f) == tokenize(g) != tokenize(xarr.jit(lambda x: x + 2))
    static = xarr.jit(lambda x, n: x + n, static_argnums=1)
    assert tokenize(static) != tokenize(xarr.jit(lambda x, n: x + n))
    assert tokenize(double) == tokenize(double) != tokenize(double.__wrapped__)


@pytest.mark.parametrize("module", [pickle, cloudpickle])
def test_bound_methods_are_pickled_with_their_objects(module: object) -> None:
    x = xarr.asarray([1.0, 2.0])
    assert_same(pickle.loads(module.dumps(Shift(3.0).add))(x), np.array([4.0, 5.0]))  # type: ignore[attr-defined]
    assert_same(pickle.loads(module.dumps(Scale(3.0).scale))(x), np.array([3.0, 6.0]))  # type: ignore[attr-defined]


MAIN = """
import sys
import cloudpickle, pickle
import xarr

@xarr.jit
def own(x):
    return own_plain(x) * 2

def own_plain(x):
    return x + 1

@xarr.jit
def recursive(x):
    return recursive(x[0]) if x.ndim else x * 5

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(own)) is own
    open(sys.argv[1], "wb").write(cloudpickle.dumps((own, own, recursive)))
"""


def test_functions_of_scripts_are_pickled_by_value(tmp_path: Path) -> None:
    """In another process `__main__` is another module, as for plain functions."""
    script, stream = tmp_path / "script.py", tmp_path / "stream"
    script.write_text(MAIN, encoding="utf-8")
    subprocess.run([sys.executable, str(script), str(stream)], check=True)
    own, same, recursive = pickle.loads(stream.read_bytes())
    assert own is same and type(own) is type(double)
    assert own(xarr.asarray([1.0])).tolist() == [4.0]
    assert recursive(xarr.asarray([1.0])).item() == 5.0
