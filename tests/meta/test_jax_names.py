"""Names of JAX: which are there, which are not and why, and in what the signatures of the shared ones differ."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from xarr.base import absent_names
from xarr.errors import DTypeError, InputError

jax.config.update("jax_enable_x64", True)

MODULES = {"": jax, "lax": jax.lax, "lax.linalg": jax.lax.linalg, "random": jax.random, "tree": jax.tree}


def _own(path: str) -> ModuleType:
    module = xarr
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    return module


def _missing(path: str, theirs: ModuleType) -> Iterator[str]:
    for name in dir(theirs):
        if not name.startswith("_") and not name.endswith("_p") and not hasattr(_own(path), name):
            yield f"{path}.{name}".removeprefix(".")


def test_every_name_of_jax_is_there_or_has_a_reason() -> None:
    missing = {name for path, theirs in MODULES.items() for name in _missing(path, theirs)}
    listed = set(absent_names.reasons_of_jax())
    assert missing <= listed, sorted(missing - listed)
    # The modules among these are there once something has imported them.
    late = {"core", "extend", "flatten_util", "float0", "version", "dtypes"}
    assert listed - missing <= late, sorted(listed - missing)


def test_the_table_names_each_once() -> None:
    with open(absent_names.PATH_OF_JAX, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    names = [name for row in rows for name in row[1].split()]
    assert len(names) == len(set(names)) and all(len(row) == 2 for row in rows)


def test_the_page_lists_what_is_left_out() -> None:
    page = (CHECKOUT / "docs" / "beside_jax_lax.md").read_text(encoding="utf-8")
    names: dict[str, list[str]] = {}
    for name, reason in absent_names.reasons_of_jax().items():
        names.setdefault(reason, []).append(f"`{name}`")
    for reason, shown in names.items():
        assert f"| {reason} | {', '.join(shown)} |" in page


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("", "grad", "which JAX has: derivatives are planned"),
        ("", "smap", r"axis_names=\{"),
        ("", "make_jaxpr", r"xarr\.lower\(f, \*args\) gives the graph"),
        ("lax", "pcast", "a mesh is given to shard_map"),
        ("lax.linalg", "schur", "JAX calls LAPACK"),
    ],
)
def test_the_error_says_why(path: str, name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(_own(path), name)


@pytest.mark.parametrize(
    ("expression", "suggestion"),
    [
        ("xarr.lax.dynamicslice", "dynamic_slice"),
        ("xarr.random.unifrom", "uniform"),
        ("xarr.tree.mapp", "map"),
    ],
)
def test_python_suggests_the_name_that_was_meant(expression: str, suggestion: str) -> None:
    code = f"import xarr, xarr.tree; {expression}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"Did you mean: '{suggestion}'?" in run.stderr


def test_stop_gradient_changes_nothing() -> None:
    x = {"a": xarr.ones(2)}
    assert xarr.lax.stop_gradient(x) is x


def test_an_import_of_a_name_says_why() -> None:
    with pytest.raises(ImportError, match="which JAX has: derivatives are planned"):
        from xarr import grad  # type: ignore[attr-defined]  # noqa: F401


# --- signatures --------------------------------------------------------------------------------------

#: Arguments of jax.lax that no function of xarr.lax takes, and why.
EVERYWHERE = {
    "accuracy": "it chooses among ways of rounding, and xarr has one",
    "out_sharding": "no sharding is guessed or constrained: xarr.distributed.device_put splits arrays",
    "sharding": "as above",
}
#: Other arguments that are not there, or not by that name.
ELSEWHERE = {
    ("all_gather", "to"): "JAX's types say what varies along an axis; those of xarr do not",
    ("nextafter", "x1"): "x, as of all functions of two arrays",
    ("nextafter", "x2"): "y, as of all functions of two arrays",
    ("scan", "_split_transpose"): "a private argument, about derivatives",
}


def _share(path: str) -> Iterator[tuple[str, Any, Any]]:
    own, theirs = _own(path), MODULES[path]
    for name in dir(theirs):
        mine, other = getattr(own, name, None), getattr(theirs, name)
        if not name.startswith("_") and mine is not None and callable(other) and not isinstance(other, type):
            yield name, mine, other


def test_the_arguments_of_lax_are_those_of_jax() -> None:
    result, everywhere = set(), set()
    for name, mine, theirs in _share("lax"):
        try:
            wanted = inspect.signature(theirs).parameters
        except (TypeError, ValueError):  # a built-in, or a primitive
            continue
        own = inspect.signature(mine).parameters
        positional = [
            key for key, each in wanted.items() if each.kind is each.POSITIONAL_OR_KEYWORD and key in own
        ]
        assert positional == [key for key in own if key in positional], name
        for key, each in wanted.items():
            if key not in own and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                (everywhere if key in EVERYWHERE else result).add(key if key in EVERYWHERE else (name, key))
    assert result == set(ELSEWHERE)
    assert everywhere == set(EVERYWHERE)


@pytest.mark.parametrize(
    ("dtype", "out_dtype"),
    [
        ("int8", "int32"),
        ("float32", "float64"),
        ("float32", "float16"),
        ("int32", "int8"),
        ("bfloat16", "float32"),
    ],
)
def test_mul_to_another_element_type(dtype: str, out_dtype: str) -> None:
    x, y = (np.array(values).astype(jax.numpy.dtype(dtype)) for values in ([[100, 3]], [[100], [-7]]))
    x, y = np.broadcast_to(x, (2, 2)), np.broadcast_to(y, (2, 2))
    wanted = np.asarray(jax.lax.mul(x, y, out_dtype=out_dtype))
    assert_same(xarr.lax.mul(x, y, out_dtype=out_dtype), wanted)
    assert_same(xarr.jit(lambda a, b: xarr.lax.mul(a, b, out_dtype=out_dtype))(x, y), wanted)
    assert_same(xarr.lax.mul(xarr.asarray(x[0]), xarr.asarray(y), (1,), out_dtype=out_dtype), wanted)
    with pytest.raises(DTypeError):
        xarr.lax.mul(x, np.ones((2, 2), bool), out_dtype=out_dtype)


def test_operands_of_branches_by_name() -> None:
    both = xarr.lax.cond(True, lambda x: x, lambda x: -x, operand=2.0)
    assert_same(both, np.asarray(2.0))
    assert_same(xarr.lax.cond(False, lambda _: 1, lambda _: 2, operand=None), np.asarray(2))
    assert_same(xarr.lax.switch(1, [lambda x: x, lambda x: -x], operand=2.0), np.asarray(-2.0))
    with pytest.raises(InputError, match="got both"):
        xarr.lax.cond(True, lambda x: x, lambda x: -x, 1.0, operand=2.0)
    assert_same(xarr.lax.map(lambda x: x + 1, np.arange(3), batch_size=2), np.arange(3) + 1)
    assert_same(xarr.lax.stack(operands=[np.ones(2), np.zeros(2)]), np.stack([np.ones(2), np.zeros(2)]))
