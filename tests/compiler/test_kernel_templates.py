"""Loop programs of groups that differ in sizes and offsets alone, and what is made of them without building them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax

pytest.importorskip("llvmlite")

from xarr.compiler import kernel_templates
from xarr.compiler.kernel_templates import TemplateKernel
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.schedule import Schedule, kind_of
from xarr.compiler.symbolic_numbers import NumberTrace
from xarr.ir import ops
from xarr_numpy.compiled.drafts import Draft, draft_of
from xarr_numpy.compiled.schedule import SCHEDULE

pytestmark = [pytest.mark.usefixtures("fused"), pytest.mark.implicit]


@pytest.fixture(autouse=True)
def _no_templates() -> None:
    for cache in (kernel_templates._kind, kernel_templates._count):
        cache.cache_clear()


def update(n: int) -> tuple[Any, ...]:
    k = n - 70
    return (lambda a: a.at[k:, k:].set(a[k:, k:] - a[k:, k - 1, None] * a[None, k - 1, k:])), "f64[80,80]"


def column(n: int) -> tuple[Any, ...]:
    k = n - 70
    return (lambda a: a[k:, k - 1] / a[k - 1, k - 1] + a[k - 1, k - 1]), "f64[90,90]"


def rows(n: int) -> tuple[Any, ...]:
    return (lambda x: xarr.sum(x * x, axis=1) + 1.0), f"f32[{n},{3 * n}]"


def columns(n: int) -> tuple[Any, ...]:
    return (lambda x: x - xarr.max(x, axis=0)), f"f64[{n},{n + 30}]"


def transpose(n: int) -> tuple[Any, ...]:
    return (lambda x, y: x.T * 2.0 + y), f"f64[{n},{n + 1}]", f"f64[{n + 1},{n}]"


def borders(n: int) -> tuple[Any, ...]:
    return (lambda x: xarr.pad(x, ((1, 2), (0, 3))) + 1.0), f"f64[{n},{n}]"


def concatenation(n: int) -> tuple[Any, ...]:
    return (lambda x, y: xarr.concatenate((x[::-1], y)) * 3.0), f"s32[{n}]", f"s32[{2 * n}]"


def positions(n: int) -> tuple[Any, ...]:
    return (lambda x: xarr.where(xarr.arange(n) < 20, x, -x)), f"f64[{n}]"


def gather(n: int) -> tuple[Any, ...]:
    return (lambda x, i: x[xarr.clip(i, 0, n - 1)] * 2.0), f"f64[{n}]", f"s64[{n + 7}]"


def totals(n: int) -> tuple[Any, ...]:
    return (lambda x: xarr.cumsum(x * 2.0, axis=1)), f"f64[{n},{n + 40}]"


def windows(n: int) -> tuple[Any, ...]:
    return (
        (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3), (1, 2), "VALID") + 1.0),
        f"f64[{n},{n + 9}]",
    )


def distances(n: int) -> tuple[Any, ...]:
    return (
        (lambda x, y: xarr.min(xarr.sum((x[:, None] - y[None]) ** 2, axis=2), axis=1)),
        f"f64[{n},5]",
        f"f64[{n + 11},5]",
    )


def dimensions(n: int) -> tuple[Any, ...]:
    return (lambda x: x.transpose(1, 0, 2, 3) * 2.0), f"f64[2,3,{n},{n + 1}]"


def computed_sizes(n: int) -> tuple[Any, ...]:
    """A size that is computed is one that stands for itself."""
    return (lambda x, y: x[:, n - 70 : n - 67] * y), "f64[2,90,4,40]", "f64[2,3,4,40]"


def complex_rows(n: int) -> tuple[Any, ...]:
    return (lambda z: z[:, 1:] * z[:, :-1]), f"c128[{n},{n}]"


CASES = (
    *(
        update,
        column,
        rows,
        columns,
        transpose,
        borders,
        concatenation,
        positions,
        gather,
        totals,
        windows,
        distances,
    ),
    complex_rows,
    dimensions,
    computed_sizes,
)
#: Whose loops have constants that are computed of sizes: no two are alike.
APART = (borders, concatenation, gather, totals, windows)


def groups_of(case: Callable[[int], tuple[Any, ...]], n: int) -> list[ops.Fusion]:
    function, *types = case(n)
    graph: Any = xarr.jit(function).lower(*types).stage("fused")
    return [node.op for node in graph.nodes if isinstance(node.op, ops.Fusion)]


def build(fusion: ops.Fusion) -> Kernel:
    """The loop program as a builder makes it."""
    return SCHEDULE.builders[kind_of(fusion)](fusion, SCHEDULE.target)


def differences(got: Draft, wanted: Draft) -> list[str]:
    """The fields of a draft that are others than wanted."""

    def work(draft: Draft) -> list[Any]:
        return [(each.extent, each.cost, each.whole, each.threads) for each in draft.phases]

    pairs = {
        "text": (got.functions.module(), wanted.functions.module()),
        "template": (got.functions.template(), wanted.functions.template()),
        "phases": (work(got), work(wanted)),
        **{
            name: (getattr(got, name), getattr(wanted, name))
            for name in ("names", "copies", "operands", "scratch")
        },
    }
    return [name for name, (one, other) in pairs.items() if one != other]


def compare(case: Callable[[int], tuple[Any, ...]]) -> tuple[int, list[str]]:
    """The number of groups of a template, of sixty that are alike, and what is otherwise than by a builder."""
    count, problems = 0, []
    for n in range(71, 131):
        for fusion in groups_of(case, n):
            program = SCHEDULE.build(fusion)
            if isinstance(program, TemplateKernel):
                count += 1
                direct = build(fusion)
                problems += [f"{n}: {each}" for each in differences(draft_of(program), Draft(direct))]
                problems += [] if str(program) == str(direct) else [f"{n}: program"]
    return count, problems


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_templates_say_is_what_builders_say(case: Any) -> None:
    count, problems = compare(case)
    assert problems == []
    assert (count > 20) == (case not in APART), count


def test_forgotten_questions_are_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumberTrace, "ask", lambda self, question, answer: bool(answer))
    assert compare(update)[1]


def test_programs_are_built_when_somebody_looks() -> None:
    built = []
    kernel = TemplateKernel(
        lambda: built.append(1) or build(groups_of(rows, 80)[0]), ((), ()), has_scratch=True
    )
    assert not built
    assert [len(kernel.phases), len(kernel.inputs), len(built)] == [1, 1, 1]
    with pytest.raises(AttributeError):
        kernel.nothing  # noqa: B018


@pytest.mark.usefixtures("on_numpy")
def test_loops_write_over_what_programs_of_templates_read() -> None:
    def add_late(x: Any) -> Any:
        def step(carried: Any) -> Any:
            i, x = carried
            return i + 1, xarr.where(i > 2, x.at[xarr.asarray([1, 2, 3])].add(1.0), x)

        return lax.while_loop(lambda carried: carried[0] < 5, step, (xarr.asarray(0), x))[1]

    for size in range(100, 230, 10):
        x = np.arange(float(size))
        assert np.asarray(xarr.jit(add_late)(x)).tolist() == [0.0, 3.0, 4.0, 5.0, *x[4:]]


def test_groups_whose_sizes_are_counts_of_parts_are_built_one_by_one() -> None:
    def rotate(q: xarr.Array, w: xarr.Array) -> xarr.Array:
        for k in range(10):
            x, y, z = w[k, 0], w[k, 1], w[k, 2]
            a, b, c, d = q[0], q[1], q[2], q[3]
            moved = [
                -b * x - c * y - d * z,
                a * x + c * z - d * y,
                a * y - b * z + d * x,
                a * z + b * y - c * x,
            ]
            q = q + 0.005 * xarr.stack(moved)
            q = q / xarr.sqrt(xarr.sum(q * q))
        return q

    q, w = np.arange(1.0, 5), np.arange(30.0).reshape(10, 3)
    with xarr.use_backend("reference"):
        wanted = np.asarray(rotate(xarr.asarray(q), xarr.asarray(w)))
    np.testing.assert_allclose(np.asarray(xarr.jit(rotate)(q, w)), wanted)
    graph: Any = xarr.jit(rotate).lower(q, w).stage("fused")
    groups = [node.op for node in graph.nodes if isinstance(node.op, ops.Fusion)]
    joining = [
        each
        for each in groups
        if any(isinstance(node.op, ops.Concatenate) for node in each.computation.nodes)
    ]
    assert len(joining) > 5
    assert not any(isinstance(SCHEDULE.build(each), TemplateKernel) for each in joining)


def test_schedules_of_other_machines_have_templates_of_their_own() -> None:
    narrow = Schedule(
        SCHEDULE.target.replace(register_bytes=16), SCHEDULE.builders, SCHEDULE.limits, SCHEDULE.draft
    )
    for n in range(71, 91):
        (fusion,) = groups_of(update, n)
        wide, program = SCHEDULE.build(fusion), narrow.build(fusion)
        assert isinstance(wide, TemplateKernel) == isinstance(program, TemplateKernel)
        direct = narrow.builders[kind_of(fusion)](fusion, narrow.target)
        assert differences(draft_of(program), Draft(direct)) == []


def test_threads_see_one_program() -> None:
    """Parts of a program refer to its buffers, which are those of this one alone."""
    both = threading.Barrier(2)
    fusion = groups_of(rows, 80)[0]

    def build_slowly() -> Kernel:
        program = build(fusion)
        both.wait(30)
        return program

    kernel = TemplateKernel(build_slowly, ((), ()), has_scratch=True)
    with ThreadPoolExecutor(2) as pool:
        seen = [
            each.result(60) for each in [pool.submit(lambda: (kernel.inputs, kernel.phases)) for _ in "ab"]
        ]
    assert seen[0][0] is seen[1][0] and seen[0][1] is seen[1][1]
