"""Formulas of which a phase has many results are functions: quick code calls them, other code has copies, same bits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.compiled_modules import note_modules
from xarr.compiler.functions import FUNCTIONS
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr_numpy import engine
from xarr_numpy.compiled.codegen import llvm_jit, templates
from xarr_numpy.compiled.codegen.formula_calls import find_formulas
from xarr_numpy.compiled.codegen.slow_paths import call_formulas, count_lines
from xarr_numpy.compiled.plans import native_step
from xarr_numpy.processor import Processor

TANH, SINE, COSINE, POWER, ATAN2 = (
    FUNCTIONS[f"stablehlo.{name}"] for name in ("tanh", "sine", "cosine", "power", "atan2")
)
MOST = Processor.min_called_formulas


def arguments(count: int, dtype: Any = np.float64) -> list[Value]:
    values = Values()
    return [values.argument(f"x{k}", dtype) for k in range(count)]


def test_many_results_of_one_formula() -> None:
    xs = arguments(MOST)
    roots = [TANH(x) for x in xs]
    formulas = find_formulas(roots)
    assert [formulas[root].operands for root in roots] == [(x,) for x in xs]
    assert not find_formulas(roots[1:])


def test_one_result_of_a_formula_among_others() -> None:
    xs = arguments(MOST)
    roots = [TANH(x) for x in xs[1:]]
    assert set(find_formulas([*roots, ATAN2(xs[0], xs[1])])) == set(roots)


def test_what_has_parts_in_common_is_computed_as_before() -> None:
    """Sines and cosines of the same angles share their reduction."""
    xs = arguments(MOST)
    shared = [function(x) for x in xs[:2] for function in (SINE, COSINE)]
    roots = [SINE(x) for x in xs[2:]]
    assert set(find_formulas([*shared, *roots])) == set(roots)


def test_known_exponents_have_functions_of_their_own() -> None:
    xs = arguments(2 * MOST)
    cubes, others = (
        [POWER(x, x.constant(3.0)) for x in xs[:MOST]],
        [POWER(x, y) for x, y in pairwise(xs[MOST:])],
    )
    formulas = find_formulas([*cubes, *others])
    assert len({formula[:2] for formula in formulas.values()}) == 2
    assert all(len(formulas[cube].operands) == 1 for cube in cubes)
    assert all(len(formulas[other].operands) == 2 for other in others)


def test_an_operand_is_no_formula_of_itself() -> None:
    xs = arguments(MOST)
    roots = [TANH(x) for x in xs]
    assert [POWER(root, root.constant(1.0)) for root in roots] == roots
    assert [find_formulas(roots)[root].operands for root in roots] == [(x,) for x in xs]
    assert not find_formulas([POWER(x, x.constant(1.0)) for x in xs])


MODULE = """\
declare double @llvm.sqrt.f64(double)
define internal double @formula.1(double %a0) alwaysinline "formula" nounwind {
  %v1 = fadd double %a0, %a0
  %v2 = fadd double %v1, %a0
  ret double %v2
}
define double @f(double %x) nounwind {
  %a = call double @formula.1(double %x)
  %b = call double @formula.1(double %a)
  ret double %b
}
"""


def test_lines_are_those_with_copies() -> None:
    assert count_lines(MODULE) == MODULE.count("\n") + 3
    without = MODULE.replace("formula", "other")
    assert count_lines(without) == without.count("\n")


def test_called_formulas_are_not_copied() -> None:
    assert "alwaysinline" not in call_formulas(MODULE)
    code = llvm_jit.load(llvm_jit.assemble(call_formulas(MODULE)), ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.addresses["f"])(2.0) == 18.0


def sum_of_functions(x: Any) -> Any:
    return sum(xarr.tanh(x * k) * xarr.exp(-x * k) + xarr.power(x, 1.5 + k) for k in range(1, 9))


def sum_of_two_operands(x: Any) -> Any:
    return sum(xarr.arctan2(x * k, x) - xarr.sin(x - k) for k in range(1, 9))


@pytest.mark.usefixtures("on_numpy", "fused")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", [sum_of_functions, sum_of_two_operands])
def test_bits_do_not_depend_on_functions(
    function: Callable[[Any], Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xarr.asarray(np.array([0.25, -0.0, 1.5, 700.0, -3.25, np.inf, -np.inf, np.nan, 0.001] * 5, dtype))
    texts = note_modules(monkeypatch)
    results: list[bytes] = []
    caches: list[Any] = [engine.kernel, templates._template_code, native_step._compile]
    limits = {"functions": MOST, "quick": MOST, "inline": 10**9}
    for name, least in limits.items():
        monkeypatch.setattr(Processor, "min_called_formulas", least)
        monkeypatch.setattr(Processor, "min_quick_lines", 0 if name == "quick" else 10**9)
        for cache in caches:
            cache.cache_clear()
        texts.clear()
        results.append(np.asarray(xarr.jit(lambda x: function(x))(x)).tobytes())
        assert any('"formula"' in text for text in texts) == (name != "inline")
    assert results[0] == results[1] == results[2]
