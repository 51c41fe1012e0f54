"""make_explicit: runnable text with every broadcast spelled out, and the same bits in explicit mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xarr
from tests.compare import assert_same
from xarr.errors import InputError, TracedValueError
from xarr.explainers.explicit_program import ExplicitProgram

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]

SHIFT = xarr.asarray([10.0, 20.0, 30.0])
GENERATOR = np.random.default_rng(7)
MATRIX = GENERATOR.normal(size=(2, 3))
ROW, COLUMN, CUBE = GENERATOR.normal(size=3), GENERATOR.normal(size=(2, 1)), GENERATOR.normal(size=(4, 2, 3))
COUNTS = np.array([[1, -7, 3], [4, 0, -2]], np.int32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "outer": (lambda x, y: x - y, (COLUMN, ROW)),
    "three": (lambda x, y, z: x * y + z, (MATRIX, ROW, COLUMN)),
    "numbers": (lambda x: 2 * x**2 - 1 / (x + 3.5), (MATRIX,)),
    "number as argument": (lambda x, rate: x * rate, (MATRIX.astype(np.float32), 0.5)),
    "promotion": (lambda x, y: x / y, (COUNTS, ROW.astype(np.float32))),
    "floor division": (lambda x, y: divmod(x, y), (COUNTS, np.array([2, -3, 0], np.int32))),
    "comparison": (lambda x, y: (x < y) | (x == 0), (MATRIX, COLUMN)),
    "where": (lambda x, y: xarr.where(x > 0, x, y), (MATRIX, ROW)),
    "clip": (lambda x, y: xarr.clip(x, -0.5, y), (MATRIX, COLUMN)),
    "functions": (lambda x: xarr.tanh(xarr.exp(-abs(x))) + xarr.logaddexp(x, x[0]), (MATRIX,)),
    "rounding": (lambda x: xarr.round(x, 1) + xarr.rint(x), (MATRIX,)),
    "bits": (lambda x: ((x & 3) << 2) ^ ~x, (COUNTS,)),
    "signs": (lambda x: xarr.copysign(x, -1.0) * xarr.signbit(x), (MATRIX,)),
    "complex": (lambda x, y: (x + 1j * y).conj() * abs(x * 1j), (MATRIX, ROW)),
    "indexing": (lambda x: x[:, ::-2] - x[-1, None, :1] + x[..., 1:2], (CUBE,)),
    "update": (lambda x: x.at[1:, ::2].set(7).at[0].add(x[1]), (MATRIX,)),
    "sum": (lambda x: x - x.sum(axis=0) / x.shape[0], (MATRIX,)),
    "mean and variance": (
        lambda x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True),
        (MATRIX,),
    ),
    "max and any": (lambda x: (x.max(axis=(0, 2)), (x > 2).any(), x.argmin(axis=1)), (CUBE,)),
    "matmul": (lambda x, y: x @ y.T + 1, (MATRIX, CUBE[0])),
    "batched matmul": (lambda x, y: x @ y, (CUBE, MATRIX.T)),
    "convolution": (
        lambda x, y: xarr.lax.conv(x, y, (2,), "SAME", preferred_element_type="float32"),
        (CUBE, CUBE[:, :, :2]),
    ),
    "tensordot": (lambda x, y: xarr.tensordot(x, y, 2), (CUBE, MATRIX)),
    "shapes": (lambda x: xarr.stack([x.T.reshape(3, 2), x.reshape(-1, 2)]).squeeze(), (MATRIX,)),
    "concatenate": (lambda x, y: xarr.concatenate([x, y], axis=1), (MATRIX, COLUMN)),
    "creation": (lambda x: x + xarr.arange(3) * xarr.eye(2, 3) - xarr.linspace(0, 1, 3), (MATRIX,)),
    "sort": (lambda x: xarr.sort(x, axis=0), (CUBE,)),
    "closure": (lambda x: x + SHIFT * 2, (MATRIX,)),
    "several results": (lambda x, y: (x + y, [x, y][1]), (MATRIX, ROW)),
    "the argument itself": (lambda x: x, (MATRIX,)),
    "a constant": (lambda x: 3.0, (MATRIX,)),
    "no arguments": (lambda: SHIFT[:, None] - SHIFT, ()),
    "scalars": (lambda x, y: x * y, (np.float64(2.0), np.array(3.0))),
    "empty": (lambda x: x + xarr.ones((2, 0)), (np.zeros((2, 1)),)),
    "windows": (
        lambda x: xarr.lax.reduce_window(x, 0.0, lambda a, b: a + b * 2.0, (1, 2), (1, 1), "SAME") + x.sum(),
        (MATRIX,),
    ),
    "windows of pairs": (
        lambda x, y: xarr.lax.reduce_window(
            (x, y),
            (0.0, 1.0),
            lambda a, b: (a[0] + b[0], a[1] * b[1]),
            (1, 2),
            None,
            [(0, 0), (1, -1)],
            (1, 2),
            (2, 1),
        ),
        (MATRIX, -MATRIX),
    ),
    "choices in windows": (
        lambda x: xarr.lax.select_and_scatter(
            x, xarr.lax.ge, (1, 2), (1, 1), "VALID", x[:, 1:], 0.0, lambda a, b: a + b
        ),
        (MATRIX,),
    ),
    "running sum": (lambda x: xarr.cumsum(x, 1) - xarr.cumulative_prod(x, axis=0), (MATRIX,)),
    "loop": (lambda x: xarr.lax.fori_loop(0, 3, lambda i, y: y * 2.0, x), (ROW,)),
    "branch": (lambda x: xarr.lax.cond(x[0] > 0, lambda y: y + 1.0, lambda y: y - 1.0, x), (ROW,)),
}


def run_as_text(program: ExplicitProgram, arrays: list[xarr.Array]) -> Any:
    """The text pasted into a file of its own and run under explicit broadcasting."""
    scope: dict[str, Any] = {"lax": xarr.lax, "np": np, **program.constants}
    exec(compile(program.text, "pasted.py", "exec"), scope)
    with xarr.config(broadcasting="explicit"):
        return scope[program.name](*arrays, *program.captured)


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits_in_explicit_mode(name: str) -> None:
    function, operands = FUNCTIONS[name]
    arguments = [xarr.asarray(v) if isinstance(v, np.ndarray | np.generic) else v for v in operands]
    program = xarr.make_explicit(function, *arguments)
    assert isinstance(program, ExplicitProgram)
    wanted = [xarr.asarray(value) for value in results(function(*arguments))]
    arrays = [a for a in arguments if isinstance(a, xarr.Array)]
    with xarr.config(broadcasting="explicit"):
        outputs = results(program(*arguments))
    pasted = results(run_as_text(program, arrays))
    assert len(outputs) == len(wanted) == len(pasted)
    for got, other, right in zip(outputs, pasted, wanted, strict=True):
        assert_same(got, np.asarray(right))
        assert_same(other, np.asarray(right))


def test_every_broadcast_is_in_the_text() -> None:
    program = xarr.make_explicit(lambda x, y, z: x * y - z, MATRIX, ROW, COLUMN)
    assert isinstance(program, ExplicitProgram)
    assert program.text == str(program)
    assert program.text == (
        "def program(x, y, z):\n"
        "    v3 = lax.broadcast_in_dim(y, (2, 3), (1,))\n"
        "    v4 = lax.mul(x, v3)\n"
        "    v5 = lax.broadcast_in_dim(z, (2, 3), (0, 1))\n"
        "    v6 = lax.sub(v4, v5)\n"
        "    return v6\n"
    )


def test_the_names_of_function_and_parameters_are_kept() -> None:
    def center(image: Any, rows: Any) -> Any:
        return image - rows

    program = xarr.make_explicit(center, MATRIX, ROW)
    assert isinstance(program, ExplicitProgram)
    assert program.text.startswith("def center(image, rows):\n")


def test_names_that_the_text_needs_are_changed() -> None:
    def lax(np: Any, v3: Any, v3_: Any, captured_0: Any, f1_0: Any) -> Any:
        return np * v3 + v3_ - captured_0 + SHIFT + f1_0.sum()

    values = [xarr.asarray(ROW * k) for k in range(1, 6)]
    program = xarr.make_explicit(lax, *values)
    assert isinstance(program, ExplicitProgram)
    assert_same(program(*values), np.asarray(lax(*values)))


def test_a_function_with_arguments_waits_for_them() -> None:
    later = xarr.make_explicit(lambda x, y: x + y)
    program = later(MATRIX, ROW)
    assert isinstance(program, ExplicitProgram)
    assert_same(program(xarr.asarray(MATRIX), xarr.asarray(ROW)), MATRIX + ROW)


def test_arguments_may_be_shapes() -> None:
    program = xarr.make_explicit(lambda x, y: x + y, "f32[2,3]", "f32[3]")
    assert isinstance(program, ExplicitProgram)
    assert "lax.broadcast_in_dim(y, (2, 3), (1,))" in program.text


def test_closures_are_captured_by_value_of_the_handle() -> None:
    shift = xarr.asarray([1.0, 2.0, 3.0])
    program = xarr.make_explicit(lambda x: x + shift, MATRIX)
    assert isinstance(program, ExplicitProgram)
    assert program.text.startswith("def program(x, captured_0):")
    shift += 100
    assert_same(program(xarr.asarray(MATRIX)), MATRIX + np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    "value",
    [
        *(np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-320, 0.1, True, 2**62, -(2**63)),
        *(1 + 2j, complex(-0.0, np.nan), complex(np.inf, -0.0)),
        *(np.float32(0.1), np.float16(65504), np.uint64(2**64 - 1), np.int8(-128), np.complex64(1j)),
    ],
    ids=lambda value: f"{type(value).__name__} {value} {np.asarray(value).tobytes().hex()}",
)
def test_literals_keep_their_bits(value: Any) -> None:
    literal = np.asarray(value)
    program = xarr.make_explicit(lambda: xarr.lax.full((2,), literal[()]))
    assert isinstance(program, ExplicitProgram)
    result = np.asarray(program())
    assert result.dtype == literal.dtype
    assert result.tobytes() == np.full(2, literal).tobytes()


def test_a_number_is_part_of_the_program() -> None:
    x = xarr.asarray(ROW)
    program = xarr.make_explicit(lambda x, rate: x * rate, x, 2.0)
    assert isinstance(program, ExplicitProgram)
    assert "2.0" in program.text
    assert_same(program(x, 2.0), ROW * 2.0)
    for other in (3.0, 2, x):
        with pytest.raises(InputError, match=r"was made for the number 2.0, got"):
            program(x, other)
    with pytest.raises(InputError, match="takes 2 arguments, got 1"):
        program(x)


def test_arrays_of_another_backend_than_the_default() -> None:
    x = xarr.asarray(MATRIX).to("reference")
    program = xarr.make_explicit(lambda x: x * 2 + x[0], x)
    assert isinstance(program, ExplicitProgram)
    result = program(x)
    assert result.backend == "reference"
    assert_same(result, MATRIX * 2 + MATRIX[0])


def test_what_cannot_be_made_explicit() -> None:
    with pytest.raises(InputError, match="wants a function, got int"):
        xarr.make_explicit(3)
    with pytest.raises(InputError, match="returns an Array or a tuple or list of Arrays, got str"):
        xarr.make_explicit(lambda x: "text", ROW)
    with pytest.raises(TracedValueError, match=r"test_explicit_program\.py"):
        xarr.make_explicit(lambda x: x if x[0] > 0 else -x, ROW)


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: xarr.maximum(x, y),
    lambda x, y: xarr.where(x < y, x, 0.5),
    lambda x, y: x[..., ::-1] + y,
    lambda x, y: x.sum(axis=0, keepdims=True) - y,
    lambda x, y: abs(x) // (1 + y * y),
]


@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_random_programs(steps: list[tuple[Callable[[Any, Any], Any], int, int]]) -> None:
    def function(*inputs: Any) -> Any:
        values = list(inputs)
        for operation, left, right in steps:
            values.append(operation(values[left % len(values)], values[right % len(values)]))
        return values[-1]

    arguments = [xarr.asarray(value) for value in (MATRIX, ROW, COLUMN)]
    program = xarr.make_explicit(function, *arguments)
    assert isinstance(program, ExplicitProgram)
    assert_same(run_as_text(program, arguments), np.asarray(function(*arguments)))


def test_programs_are_made_where_implicit_broadcasts_are_refused() -> None:
    x, v = xarr.ones((2, 3)), xarr.asarray([1.0, 2.0, 3.0])
    with xarr.config(broadcasting="explicit"):
        program = xarr.make_explicit(lambda x, v: x * v, x, v)
        assert "lax.broadcast_in_dim(v, (2, 3), (1,))" in program.text
        assert_same(program(x, v), np.broadcast_to([1.0, 2.0, 3.0], (2, 3)))
        assert xarr.config.broadcasting == "explicit"
