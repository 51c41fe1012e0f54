"""Chapters one to three: predict the shape, repair the failure, loops as one line of NumPy."""

from __future__ import annotations

from typing import Final

from xarr.puzzles.records import ArraySpec, Puzzle, Reason, Wrong

PREDICT: Final = "1 predict the shape"
REPAIR: Final = "2 repair the failure"
LOOPS: Final = "3 from a loop to one line of NumPy"


def list_wrong(reason: Reason, *answers: str) -> tuple[Wrong, ...]:
    """Answers that fail for one reason."""
    return tuple(Wrong(answer, reason) for answer in answers)


def _predict(
    number: int, title: str, shown: str, arrays: tuple[ArraySpec, ...], solution: str, *wrong: str
) -> Puzzle:
    """A puzzle that asks for the shape of an expression."""
    return Puzzle(
        number,
        PREDICT,
        title,
        f"Write the shape of `{shown}` as a tuple of the sizes.",
        arrays,
        f"result = ({shown}).shape",
        solution,
        list_wrong("shape", *wrong),
        shown=shown,
        is_shape=True,
    )


PREDICTIONS: Final = (
    _predict(
        1,
        "a column and a row",
        "a - b",
        (ArraySpec("a", "m 1"), ArraySpec("b", "n")),
        "(m, n)",
        *("(n, m)", "(m, 1)", "(n,)", "(m, 1, n)"),
    ),
    _predict(
        2,
        "a matrix and a vector",
        "x + v",
        (ArraySpec("x", "m n"), ArraySpec("v", "n")),
        "(m, n)",
        *("(n, m)", "(m,)", "(n,)", "(m, n, n)", "(m, n, 1)"),
    ),
    _predict(
        3,
        "three axes from two",
        "a * b",
        (ArraySpec("a", "m 1 n"), ArraySpec("b", "k 1")),
        "(m, k, n)",
        *("(m, n, k)", "(k, m, n)", "(m, k, 1)", "(m, 1, n)", "(m, k)"),
    ),
    _predict(
        4,
        "the surprise",
        "a - b",
        (ArraySpec("a", "n 1"), ArraySpec("b", "n")),
        "(n, n)",
        *("(n, 1)", "(n,)", "(1, n)", "(n, 1, n)"),
    ),
    _predict(
        5,
        "a sum over the middle",
        "x.sum(axis=1)",
        (ArraySpec("x", "k m n"),),
        "(k, n)",
        *("(m, n)", "(k, m)", "(k, 1, n)", "(n, k)", "(m,)"),
    ),
    _predict(
        6,
        "a product with a batch",
        "x @ y",
        (ArraySpec("x", "m n"), ArraySpec("y", "k n p")),
        "(k, m, p)",
        *("(m, p)", "(m, k, p)", "(k, n, p)", "(k, p, m)", "(m, n, p)"),
    ),
)

_PAIRS: Final = """\
result = np.zeros((m, n))
for i in range(m):
    for j in range(n):
        result[i, j] = {}
"""

REPAIRS: Final = (
    Puzzle(
        7,
        REPAIR,
        "every pair",
        "`a + b` fails, or adds element by element. Add each element of a to each of b.",
        (ArraySpec("a", "m"), ArraySpec("b", "n")),
        _PAIRS.format("a[i] + b[j]"),
        "a[:, None] + b",
        (
            *list_wrong("does not run", "a + b", "a[None, :] + b", "a[:, None] + b[:, None]"),
            *list_wrong("shape", "a + b[:, None]", "(a[:, None] + b).T", "a[:, None, None] + b"),
            *list_wrong("values", "a[:, None] - b"),
        ),
        shown="a + b",
    ),
    Puzzle(
        8,
        REPAIR,
        "one number for each row",
        "`x - v` fails. Subtract v[i] from row i of x.",
        (ArraySpec("x", "m n"), ArraySpec("v", "m")),
        _PAIRS.format("x[i, j] - v[i]"),
        "x - v[:, None]",
        (
            *list_wrong("does not run", "x - v", "x - v[None, :]", "x - v[:, None, None].T"),
            *list_wrong("shape", "x.T - v", "x[:, :, None] - v[:, None, None]"),
            *list_wrong("values", "v[:, None] - x"),
        ),
        shown="x - v",
    ),
    Puzzle(
        9,
        REPAIR,
        "a mean for each channel",
        "`images - mean` fails. Subtract mean[c] from channel c of each image.",
        (ArraySpec("images", "k c m n"), ArraySpec("mean", "c")),
        """\
result = np.zeros((k, c, m, n))
for i in range(k):
    for j in range(c):
        result[i, j] = images[i, j] - mean[j]
""",
        "images - mean[:, None, None]",
        (
            *list_wrong("does not run", "images - mean", "images - mean[:, None]", "images - mean[None, :]"),
            *list_wrong("does not run", "images - mean[:, None, None, None]"),
            *list_wrong("values", "mean[:, None, None] - images"),
        ),
        shown="images - mean",
    ),
    Puzzle(
        10,
        REPAIR,
        "without the sum of the row",
        "`x - x.sum(axis=1)` fails. Subtract from each element the sum of its row.",
        (ArraySpec("x", "m n"),),
        _PAIRS.format("x[i, j] - sum(x[i])"),
        "x - x.sum(axis=1, keepdims=True)",
        (
            *list_wrong("does not run", "x - x.sum(axis=1)"),
            *list_wrong("values", "x - x.sum(axis=0)", "x - x.sum()", "x - x.sum(axis=0, keepdims=True)"),
            *list_wrong("shape", "(x.T - x.sum(axis=1))", "x - x.sum(axis=1)[:, None, None]"),
        ),
        shown="x - x.sum(axis=1)",
    ),
    Puzzle(
        11,
        REPAIR,
        "rows by rows",
        "`a @ b` fails. Multiply each row of a with each row of b, and sum.",
        (ArraySpec("a", "m k"), ArraySpec("b", "n k")),
        _PAIRS.format("sum(a[i] * b[j])"),
        "a @ b.T",
        (
            *list_wrong("does not run", "a @ b", "a.T @ b", "a * b"),
            *list_wrong("shape", "b @ a.T", "a[:, None] * b"),
            *list_wrong("values", "-(a @ b.T)"),
        ),
        shown="a @ b",
    ),
    Puzzle(
        12,
        REPAIR,
        "rows by a mask",
        "`np.where(mask, x, y)` fails. Take row i of x where mask[i] holds, else y.",
        (ArraySpec("mask", "m", "bool"), ArraySpec("x", "m n"), ArraySpec("y", "n")),
        _PAIRS.format("x[i, j] if mask[i] else y[j]"),
        "np.where(mask[:, None], x, y)",
        (
            *list_wrong("does not run", "np.where(mask, x, y)", "np.where(mask[:, None], x, y[:, None])"),
            *list_wrong("values", "np.where(mask[:, None], y, x)", "np.where(~mask[:, None], x, y)"),
            *list_wrong("shape", "np.where(mask[:, None, None], x, y)"),
        ),
        shown="np.where(mask, x, y)",
    ),
)

_TASK: Final = "Write these loops as one line of NumPy."

ONE_LINERS: Final = (
    Puzzle(
        13,
        LOOPS,
        "a table of products",
        _TASK,
        (ArraySpec("a", "m"), ArraySpec("b", "n")),
        _PAIRS.format("a[i] * b[j]"),
        "a[:, None] * b",
        (
            *list_wrong("does not run", "a * b", "a @ b"),
            *list_wrong("shape", "a * b[:, None]", "np.outer(b, a)", "np.outer(a, b).ravel()"),
        ),
    ),
    Puzzle(
        14,
        LOOPS,
        "down the diagonal",
        _TASK,
        (ArraySpec("x", "n n"),),
        "result = np.zeros(n)\nfor i in range(n):\n    result[i] = x[i, i]\n",
        "x.diagonal()",
        (
            *list_wrong("shape", "x", "np.diag(x.diagonal())", "x.diagonal()[:, None]", "np.trace(x)"),
            *list_wrong("values", "x[:, ::-1].diagonal()", "x.sum(axis=0)"),
        ),
    ),
    Puzzle(
        15,
        LOOPS,
        "squared distances",
        _TASK,
        (ArraySpec("p", "m k"), ArraySpec("q", "n k")),
        """\
result = np.zeros((m, n))
for i in range(m):
    for j in range(n):
        for d in range(k):
            result[i, j] += (p[i, d] - q[j, d]) ** 2
""",
        "((p[:, None] - q) ** 2).sum(axis=-1)",
        (
            *list_wrong("does not run", "((p - q) ** 2).sum(axis=-1)"),
            *list_wrong(
                "shape", "((p - q[:, None]) ** 2).sum(axis=-1)", "((p[:, None] - q) ** 2).sum(axis=1)"
            ),
            *list_wrong("shape", "((p[:, None] - q) ** 2).sum(axis=-1, keepdims=True)"),
            *list_wrong("values", "(p[:, None] - q).sum(axis=-1) ** 2"),
        ),
    ),
    Puzzle(
        16,
        LOOPS,
        "count what is positive",
        _TASK,
        (ArraySpec("x", "m n"),),
        """\
result = np.zeros(n, np.int64)
for i in range(m):
    for j in range(n):
        if x[i, j] > 0:
            result[j] += 1
""",
        "(x > 0).sum(axis=0)",
        (
            *list_wrong(
                "shape", "(x > 0).sum(axis=1)", "(x > 0).sum(axis=0, keepdims=True)", "(x > 0).sum()"
            ),
            *list_wrong("values", "(x < 0).sum(axis=0)"),
            *list_wrong("dtype", "(x > 0).any(axis=0)", "(x > 0).mean(axis=0)", "x.sum(axis=0)"),
        ),
    ),
    Puzzle(
        17,
        LOOPS,
        "only on the diagonal",
        _TASK,
        (ArraySpec("d", "n"),),
        "result = np.zeros((n, n))\nfor i in range(n):\n    result[i, i] = d[i]\n",
        "np.diag(d)",
        (
            *list_wrong("shape", "d", "d[:, None]", "np.eye(n) @ d"),
            *list_wrong("values", "d[:, None] * d", "np.diag(d[::-1])", "np.eye(n)", "np.eye(n) + d"),
        ),
    ),
    Puzzle(
        18,
        LOOPS,
        "one product for each pair of matrices",
        _TASK,
        (ArraySpec("x", "b m k"), ArraySpec("y", "b k n")),
        """\
result = np.zeros((b, m, n))
for r in range(b):
    for i in range(m):
        for j in range(n):
            for s in range(k):
                result[r, i, j] += x[r, i, s] * y[r, s, j]
""",
        "x @ y",
        (
            *list_wrong("does not run", "x * y", "y @ x", "x @ y.mT"),
            *list_wrong("shape", "np.tensordot(x, y, axes=([2], [1]))", "(x @ y).sum(axis=0)", "(x @ y).mT"),
        ),
    ),
)
