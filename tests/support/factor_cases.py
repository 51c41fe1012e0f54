"""Graphs of factors of matrices and of what follows from them."""

from __future__ import annotations

import numpy as np

from tests.support.graph_parts import Case, graph, node, parts, tensor
from xarr.ir import ops

MATRICES = tensor(np.float64, 2, 3, 2)
VALUES = np.array([[[1.0, 2.0], [4.0, -1.0], [3.0, 0.5]], [[0.0, 1.0], [2.0, 2.0], [1.0, 7.0]]])

FACTORS = {
    "Lu": Case(
        graph(lambda a: parts(3, node(ops.Lu(), a)), MATRICES),
        (VALUES,),
    ),
    "Geqrf": Case(
        graph(lambda a: parts(2, node(ops.Geqrf(), a)), MATRICES),
        (VALUES,),
    ),
    "HouseholderProduct": Case(
        graph(
            lambda a, t: node(ops.HouseholderProduct(), a, t),
            tensor(np.complex64, 3, 2),
            tensor(np.complex64, 2),
        ),
        (np.complex64([[1, 2], [0.5j, 1], [0, 1 - 1j]]), np.complex64([1, 0.5])),
    ),
    # Vectors have signs of their own, on each backend others.
    "Svd": Case(
        graph(lambda a: parts(5, node(ops.Svd(), a))[1], MATRICES),
        (VALUES,),
    ),
    "Eigh": Case(
        graph(lambda a: parts(3, node(ops.Eigh(False), a))[1], tensor(np.complex128, 2, 2)),
        (np.array([[2.0, 1j], [np.nan, 2.0]]),),
        ([1, 3],),
    ),
    "Eig": Case(
        graph(lambda a: parts(5, node(ops.Eig(), a))[:2], tensor(np.float64, 2, 2)),
        (np.array([[2.0, 1.0], [0.0, 3.0]]),),
        ([2, 3], [0, 0]),
    ),
    "Solve": Case(
        graph(
            lambda a, b: parts(2, node(ops.Solve(), a, b)),
            tensor(np.float64, 2, 2, 2),
            tensor(np.float64, 2, 2, 1),
        ),
        (np.array([[[0.0, 2.0], [1.0, 1.0]], [[1, 2], [2, 4]]]), np.array([[[2.0], [3.0]], [[1.0], [1.0]]])),
        ([[[2], [1]], [[np.nan], [np.nan]]], [False, True]),
    ),
    "LogDeterminant": Case(
        graph(lambda a: parts(2, node(ops.LogDeterminant(), a)), tensor(np.float32, 2, 2, 2)),
        (np.float32([[[0, 2], [1, 1]], [[1, 2], [2, 4]]]),),
        ([-1, 0], [np.log(2), -np.inf]),
    ),
    "Check": Case(
        graph(
            lambda x, good: node(ops.Check("no good"), x, good), tensor(np.float32, 2), tensor(np.bool_, 3)
        ),
        (np.float32([1, 2]), np.array([True] * 3)),
        ([1, 2],),
    ),
}
