"""Programs exported by JAX from shard_map, run without JAX by the partitions of a replica, beside JAX's results."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import xarr
from tests.compare import assert_same
from xarr import lax, stablehlo
from xarr.distributed import PartitionSpec as P, make_mesh, simulate
from xarr.errors import CommunicationError, ParseError

#: A function of a part, how operand and results are cut: float32[8,8] over a mesh of two by two, i and j.
PROGRAMS = [
    ("lambda x: x + 1", "P('i', 'j')", "P('i', 'j')"),
    ("lambda x: x.T", "P('i', 'j')", "P('j', 'i')"),
    ("lambda x: x * 2", "P()", "P()"),
    ("lambda x: x.sum(0)", "P(None, ('i', 'j'))", "P(('i', 'j'))"),
    ("lambda x: x.sum(0)", "P(None, ('j', 'i'))", "P(('j', 'i'))"),
    ("lambda x: lax.psum(x, 'j')", "P('i', 'j')", "P('i')"),
    ("lambda x: lax.psum(x, ('i', 'j'))", "P('i', 'j')", "P()"),
    ("lambda x: lax.pmean(x, 'i')", "P('i')", "P()"),
    ("lambda x: lax.pmax(-x, 'i')", "P('i')", "P()"),
    ("lambda x: lax.all_gather(x, 'i')", "P('i', 'j')", "P(None, None, 'j')"),
    ("lambda x: lax.all_gather(x, 'j', axis=1, tiled=True)", "P('i', 'j')", "P('i')"),
    ("lambda x: x + lax.axis_index('j')", "P('i', 'j')", "P('i', 'j')"),
    ("lambda x: x * lax.axis_index(('j', 'i'))", "P('i', 'j')", "P('i', 'j')"),
    ("lambda x: lax.ppermute(x, 'i', [(0, 1)])", "P('i', 'j')", "P('i', 'j')"),
    ("lambda x: lax.ppermute(x, ('i', 'j'), [(0, 3), (1, 0)])", "P('i', 'j')", "P('i', 'j')"),
    ("lambda x: lax.psum_scatter(x, 'j', tiled=True)", "P('i')", "P(('i', 'j'))"),
    ("lambda x: lax.all_to_all(x, ('i', 'j'), 1, 0, tiled=True)", "P(('i', 'j'))", "P(None, ('i', 'j'))"),
    ("lambda x: lax.fori_loop(0, 3, lambda k, c: c + 2 * lax.psum(c, 'i'), x)", "P('i')", "P('i')"),
    ("lambda x: lax.cond(lax.axis_index('i') == 0, lambda y: y, lambda y: -y, x)", "P('i')", "P('i')"),
    (
        "lambda x: (lax.psum(x, 'i'), {'a': lax.psum(x[0], 'i'), 'b': lax.axis_index('i')[None]})",
        "P('i', 'j')",
        None,
    ),
]

_JAX = """
import os, pickle, sys
os.environ["JAX_PLATFORMS"], os.environ["XLA_FLAGS"] = "cpu", "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax import export, lax
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(AxisType.Auto,) * 2)
x = np.arange(64, dtype=np.float32).reshape(8, 8)
results = []
for function, before, after in pickle.load(open(sys.argv[1], "rb")):
    specs = eval(before), (P(None, "j"), {"a": P("j"), "b": P("i")}) if after is None else eval(after)
    f = jax.jit(jax.shard_map(eval(function), mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    text = export.export(f)(shape).mlir_module()
    results.append((text, [np.asarray(each) for each in jax.tree.leaves(f(x))]))
pickle.dump((x, results), open(sys.argv[2], "wb"))
"""

Exported = tuple[np.ndarray[Any, Any], list[tuple[str, list[np.ndarray[Any, Any]]]]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The operand, and of each program its text and what JAX computes."""
    folder = tmp_path_factory.mktemp("jax")
    (folder / "programs").write_bytes(pickle.dumps(PROGRAMS))
    paths = [str(folder / name) for name in ("programs", "results")]
    subprocess.run([sys.executable, "-c", _JAX, *paths], check=True, timeout=300)
    result: Exported = pickle.loads((folder / "results").read_bytes())
    return result


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_exports_of_jax_run_without_it(exported: Exported, backend: str) -> None:
    x, programs = exported
    assert len(programs) == 20
    for text, wanted in programs:

        def run(text: str = text) -> list[Any]:
            return [np.asarray(each) for each in stablehlo.run(text, x, backend=backend)]

        for results in simulate(4, run, num_partitions=4):
            for result, want in zip(results, wanted, strict=True):
                assert_same(result, want)


def test_the_members_are_those_of_the_mesh(exported: Exported) -> None:
    x, programs = exported
    with pytest.raises(
        CommunicationError,
        match=r"from 0 to 0 .* on 1 replica of 1 partition has.*simulate\(n, f",
    ):
        stablehlo.run(programs[5][0], x)


_TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x"}], replicated={}>]
      manual_axes={"x"} (%b: tensor<2xf32>) {
    sdy.return %b : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_parts_are_taken_and_joined() -> None:
    x = np.arange(4, dtype=np.float32)
    for (result,) in simulate(2, lambda: stablehlo.run(_TEXT, x), num_partitions=2):
        assert_same(result, x)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("in_shardings=[<@mesh", "in_shardings=[<@other", "there is no mesh @other"),
        ('[<@mesh, [{"x", ?}]>] out', "[] out", "expected 1 in_shardings, got 0"),
        ('"x"=2', '"x"=3', "expected a size that 3 members divide, got 4"),
        ('manual_axes={"x"}', "axes={}", "expected 'manual_axes'"),
    ],
)
def test_other_texts_are_refused(old: str, new: str, message: str) -> None:
    assert old in _TEXT
    with pytest.raises(ParseError, match=message):
        stablehlo.parse(_TEXT.replace(old, new))


def _print_product() -> str:
    mesh = make_mesh((2, 2), ("x", "y"), devices=[3, 1, 0, 2])

    @xarr.shard_map(mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P(None, "y")))
    def product(a: xarr.Array, b: xarr.Array) -> Any:
        return lax.psum(a @ b, "y") + lax.axis_index("x"), b

    return str(xarr.jit(product).lower(np.ones((4, 6)), np.ones((6, 3))).stage("traced"))


def test_what_xarr_prints_is_as_mlir_prints_it_and_runs() -> None:
    text = _print_product()
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        assert str(module).rstrip() == text
        assert module.operation.verify()
    a, b = np.arange(24.0).reshape(4, 6), np.arange(18.0).reshape(6, 3)
    for product, columns in simulate(4, lambda: stablehlo.run(text, a, b)):
        assert_same(product, a @ b + np.array([0, 0, 1, 1])[:, None])
        assert_same(columns, np.concatenate([b[:3], b[3:]], 1))
