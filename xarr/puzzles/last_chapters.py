"""Chapters four to six: one op with `broadcast_dimensions`, gathers and windows, layout and reuse."""

from __future__ import annotations

from typing import Final

from xarr.puzzles.first_chapters import list_wrong
from xarr.puzzles.records import ArraySpec, Puzzle, Rule

EXPLICIT: Final = "4 from NumPy to one op of lax"
INDICES: Final = "5 gather, scatter, window"
REUSE: Final = "6 layout and reuse"

_ONE_OP: Final[tuple[Rule, ...]] = ("nothing implicit", "one op")
_TASK: Final = "Write `{}` as one op of `lax`, with nothing left implicit."


OPS: Final = (
    Puzzle(
        19,
        EXPLICIT,
        "along the last axis",
        _TASK.format("x + v"),
        (ArraySpec("x", "m n"), ArraySpec("v", "n")),
        "result = x + v",
        "lax.add(x, v, broadcast_dimensions=(1,))",
        (
            *list_wrong("does not run", "x + v", "lax.add(x, v)", "lax.add(x, v, broadcast_dimensions=(0,))"),
            *list_wrong("values", "lax.sub(x, v, broadcast_dimensions=(1,))"),
            *list_wrong("rule", "lax.add(lax.neg(lax.neg(x)), v, broadcast_dimensions=(1,))"),
        ),
        _ONE_OP,
        "x + v",
    ),
    Puzzle(
        20,
        EXPLICIT,
        "along the first axis",
        _TASK.format("x * v[:, None]"),
        (ArraySpec("x", "m n"), ArraySpec("v", "m")),
        "result = x * v[:, None]",
        "lax.mul(x, v, broadcast_dimensions=(0,))",
        (
            *list_wrong(
                "does not run", "x * v[:, None]", "lax.mul(x, v)", "lax.mul(x, v, broadcast_dimensions=(1,))"
            ),
            *list_wrong("shape", "lax.mul(lax.transpose(x, (1, 0)), v, broadcast_dimensions=(1,))"),
            *list_wrong("values", "lax.add(x, v, broadcast_dimensions=(0,))"),
        ),
        _ONE_OP,
        "x * v[:, None]",
    ),
    Puzzle(
        21,
        EXPLICIT,
        "around an axis",
        _TASK.format("x - w[:, None]"),
        (ArraySpec("x", "k m n"), ArraySpec("w", "k n")),
        "result = x - w[:, None]",
        "lax.sub(x, w, broadcast_dimensions=(0, 2))",
        (
            *list_wrong("does not run", "x - w[:, None]", "lax.sub(x, w, broadcast_dimensions=(1, 2))"),
            *list_wrong("does not run", "lax.sub(x, w, broadcast_dimensions=(0, 1))", "lax.sub(x, w)"),
            *list_wrong("values", "lax.sub(w, x, broadcast_dimensions=(0, 2))"),
        ),
        _ONE_OP,
        "x - w[:, None]",
    ),
    Puzzle(
        22,
        EXPLICIT,
        "a vector as columns",
        _TASK.format("np.broadcast_to(v[:, None], (m, n))"),
        (ArraySpec("v", "m"), ArraySpec("w", "n")),
        "result = np.broadcast_to(v[:, None], (m, n)).copy()",
        "lax.broadcast_in_dim(v, (m, n), (0,))",
        (
            *list_wrong(
                "does not run", "lax.broadcast_in_dim(v, (m, n), (1,))", "lax.broadcast_in_dim(v, (m, n), ())"
            ),
            *list_wrong(
                "shape", "lax.broadcast_in_dim(v, (n, m), (1,))", "lax.broadcast_in_dim(v, (m, n, 1), (0,))"
            ),
            *list_wrong("does not run", "lax.broadcast_in_dim(w, (m, n), (0,))"),
            *list_wrong("values", "lax.broadcast_in_dim(w, (m, n), (1,))"),
        ),
        ("nothing implicit", "one op", "one broadcast"),
        "np.broadcast_to(v[:, None], (m, n))",
    ),
    Puzzle(
        23,
        EXPLICIT,
        "a product with its dimension numbers",
        _TASK.format("x @ y"),
        (ArraySpec("x", "b m k"), ArraySpec("y", "b k n")),
        "result = x @ y",
        "lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))",
        (
            *list_wrong("does not run", "lax.dot_general(x, y, (((1,), (2,)), ((0,), (0,))))"),
            *list_wrong(
                "does not run", "lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,))))", "lax.dot(x, y)"
            ),
            *list_wrong("shape", "lax.dot_general(x, y, (((2,), (1,)), ((), ())))"),
            *list_wrong("shape", "lax.dot_general(y, x, (((1,), (2,)), ((0,), (0,))))"),
        ),
        _ONE_OP,
        "x @ y",
    ),
    Puzzle(
        24,
        EXPLICIT,
        "axes moved",
        _TASK.format("np.moveaxis(x, 0, -1)"),
        (ArraySpec("x", "k m n"),),
        "result = np.moveaxis(x, 0, -1).copy()",
        "lax.transpose(x, (1, 2, 0))",
        (
            *list_wrong("shape", "lax.transpose(x, (2, 0, 1))", "lax.transpose(x, (2, 1, 0))", "x"),
            *list_wrong("shape", "lax.transpose(x, (0, 2, 1))", "lax.transpose(x, (1, 0, 2))"),
            *list_wrong("values", "lax.reshape(x, (m, n, k))"),
            *list_wrong("rule", "lax.transpose(lax.transpose(x, (1, 0, 2)), (0, 2, 1))"),
        ),
        _ONE_OP,
        "np.moveaxis(x, 0, -1)",
    ),
)

_LOOPS: Final = "Write these loops as one expression."

GATHERS: Final = (
    Puzzle(
        25,
        INDICES,
        "rows by number",
        _LOOPS,
        (ArraySpec("x", "m n"), ArraySpec("i", "k", "int64", "m")),
        "result = np.zeros((k, n))\nfor a in range(k):\n    result[a] = x[i[a]]\n",
        "x[i]",
        (
            *list_wrong("shape", "x[i[:, None]]", "np.take(x, i)", "x[i].T"),
            *list_wrong("values", "x[i[::-1]]"),
            *list_wrong("does not run", "x[i, i[:, None, None, None]] + x"),
        ),
    ),
    Puzzle(
        26,
        INDICES,
        "elements by two numbers",
        _LOOPS,
        (ArraySpec("x", "m n"), ArraySpec("i", "k", "int64", "m"), ArraySpec("j", "k", "int64", "n")),
        "result = np.zeros(k)\nfor a in range(k):\n    result[a] = x[i[a], j[a]]\n",
        "x[i, j]",
        (
            *list_wrong("shape", "x[i][:, j]", "x[i[:, None], j]", "x[i]", "x[:, j]"),
            *list_wrong("values", "x[i, j[::-1]]"),
        ),
    ),
    Puzzle(
        27,
        INDICES,
        "add where the numbers say",
        _LOOPS,
        (ArraySpec("x", "m"), ArraySpec("v", "k"), ArraySpec("i", "k", "int64", "m")),
        "result = x.copy()\nfor a in range(k):\n    result[i[a]] += v[a]\n",
        "x.at[i].add(v)",
        (
            *list_wrong(
                "values", "x.at[i].set(v)", "x.at[i].multiply(v)", "x.at[i].set(x[i] + v)", "x.at[i].add(-v)"
            ),
            *list_wrong("shape", "x[i] + v"),
        ),
    ),
    Puzzle(
        28,
        INDICES,
        "the larger of two neighbours",
        _LOOPS,
        (ArraySpec("x", "2*m"),),
        "result = np.zeros(m)\nfor i in range(m):\n    result[i] = max(x[2 * i], x[2 * i + 1])\n",
        "lax.reduce_window(x, -np.inf, lax.max, (2,), (2,))",
        (
            *list_wrong("shape", "lax.reduce_window(x, -np.inf, lax.max, (2,), (1,))", "x.max()"),
            *list_wrong("shape", "lax.reduce_window(x, -np.inf, lax.max, (2,))"),
            *list_wrong(
                "values", "x.reshape((2, m)).max(axis=0)", "lax.reduce_window(x, np.inf, lax.min, (2,), (2,))"
            ),
        ),
    ),
    Puzzle(
        29,
        INDICES,
        "sums of three",
        _LOOPS,
        (ArraySpec("x", "n+2"),),
        "result = np.zeros(n)\nfor i in range(n):\n    result[i] = x[i] + x[i + 1] + x[i + 2]\n",
        "lax.reduce_window(x, 0.0, lax.add, (3,), (1,))",
        (
            *list_wrong("shape", 'lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME")', "x.cumsum()"),
            *list_wrong("shape", "lax.reduce_window(x, 0.0, lax.add, (2,), (1,))"),
            *list_wrong("values", "x[:-2] + x[2:]", "lax.reduce_window(x, -np.inf, lax.max, (3,), (1,))"),
        ),
    ),
    Puzzle(
        30,
        INDICES,
        "sums of three, with zeros outside",
        _LOOPS,
        (ArraySpec("x", "n"),),
        """\
result = np.zeros(n)
for i in range(n):
    for j in (i - 1, i, i + 1):
        if 0 <= j < n:
            result[i] += x[j]
""",
        "lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((1, 1),))",
        (
            *list_wrong("shape", "lax.reduce_window(x, 0.0, lax.add, (3,), (1,))"),
            *list_wrong("shape", "lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((2, 2),))"),
            *list_wrong("values", "lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((0, 2),))"),
            *list_wrong("values", "lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((2, 0),))"),
            *list_wrong("values", "np.roll(x, 1) + x + np.roll(x, -1)"),
        ),
    ),
)


def _count(
    number: int,
    title: str,
    task: str,
    arrays: tuple[ArraySpec, ...],
    wanted: str,
    solution: str,
    *wrong: str,
    shown: str = "",
) -> Puzzle:
    """A puzzle that asks for numbers."""
    return Puzzle(
        *(number, REUSE, title, task, arrays, wanted, solution, list_wrong("shape", *wrong)),
        shown=shown,
        is_shape=True,
    )


COSTS: Final = (
    _count(
        31,
        "steps in memory",
        "x lies row by row. Write by how many elements of memory a step along each axis moves.",
        (ArraySpec("x", "k m n"),),
        """\
memory = np.arange(k * m * n).reshape(k, m, n)
result = (int(memory[1, 0, 0]), int(memory[0, 1, 0]), int(memory[0, 0, 1]))
""",
        "(m * n, n, 1)",
        *("(1, n, m * n)", "(1, k, k * m)", "(k, m, n)", "(m, n, 1)", "(m * n, m, 1)"),
        shown="x",
    ),
    _count(
        32,
        "transposed and not moved",
        "x lies row by row. Write the strides of `x.T`, in elements, where nothing is copied.",
        (ArraySpec("x", "m n"),),
        """\
memory = np.arange(m * n).reshape(m, n).T
result = (int(memory[1, 0]), int(memory[0, 1]))
""",
        "(1, n)",
        *("(n, 1)", "(1, m)", "(m, 1)", "(n, m)"),
        shown="x.T",
    ),
    _count(
        33,
        "read again and again",
        "How many times is each element of a read in `a * b`, and how many times each of b?",
        (ArraySpec("a", "m 1"), ArraySpec("b", "n")),
        """\
read_a, read_b = np.zeros((m, 1), int), np.zeros(n, int)
for i in range(m):
    for j in range(n):
        read_a[i, 0] += 1
        read_b[j] += 1
result = (int(read_a[0, 0]), int(read_b[0]))
""",
        "(n, m)",
        *("(m, n)", "(1, m)", "(n, 1)", "(m * n, m * n)", "(1, 1)"),
        shown="a * b",
    ),
    Puzzle(
        34,
        REUSE,
        "all products, added",
        "Add up the products of each element of a with each of b, without a table of them.",
        (ArraySpec("a", "m"), ArraySpec("b", "n")),
        "result = np.float64(0)\nfor i in range(m):\n    for j in range(n):\n        result += a[i] * b[j]\n",
        "a.sum() * b.sum()",
        (
            *list_wrong("rule", "(a[:, None] * b).sum()", "np.outer(a, b).sum()"),
            *list_wrong("does not run", "(a * b).sum()", "a @ b"),
            *list_wrong("values", "a.sum() + b.sum()"),
            *list_wrong("shape", "a.sum() * b"),
        ),
        ("few elements",),
    ),
    Puzzle(
        35,
        REUSE,
        "which product first",
        "Multiply the matrices x and y with the vector v, reading as few elements as possible.",
        (ArraySpec("x", "m k"), ArraySpec("y", "k n"), ArraySpec("v", "n")),
        "result = x @ y @ v",
        "x @ (y @ v)",
        (
            *list_wrong("rule", "x @ y @ v", "(x @ y * v).sum(axis=1)"),
            *list_wrong("does not run", "y @ x @ v", "x @ v"),
            *list_wrong("shape", "x @ y * v", "y @ v"),
        ),
        ("few elements",),
    ),
    Puzzle(
        36,
        REUSE,
        "the trace of a product",
        "Add up the diagonal of `x @ y`, without the rest of the product.",
        (ArraySpec("x", "m n"), ArraySpec("y", "n m")),
        "result = np.trace(x @ y)",
        "(x * y.T).sum()",
        (
            *list_wrong("rule", "np.trace(x @ y)", "(x @ y).diagonal().sum()"),
            *list_wrong("does not run", "(x * y).sum()"),
            *list_wrong("values", "(x @ y).sum()", "x.sum() * y.sum()"),
            *list_wrong("shape", "(x @ y).diagonal()", "(x * y.T).sum(axis=1)"),
        ),
        ("few elements",),
    ),
)
