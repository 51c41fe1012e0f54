"""Concatenations of many arrays, for a backend whose kernels take few."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.test_cupy_backend import device
from tests.programs import graph, type_of
from xarr import lax
from xarr.compiler.passes.decompose import split_concatenations
from xarr.ir import ops
from xarr.ir.graph import Graph


def longest(graph: Graph) -> int:
    """The operands of the longest concatenation, also in graphs inside."""
    nodes = [node for each in graph.walk() for node in each.nodes]
    return max(len(node.operands) for node in nodes if isinstance(node.op, ops.Concatenate))


def join(*arrays: Any) -> Any:
    return (lax.concatenate(arrays, 1),)


@pytest.mark.parametrize(("count", "most"), [(2, 2), (3, 2), (9, 2), (17, 4), (64, 8), (65, 8)])
def test_no_concatenation_is_longer_and_the_result_is_the_same(count: int, most: int) -> None:
    arrays = [np.full((2, k % 3), k, np.float32) for k in range(count)]
    traced = graph(join, *map(type_of, arrays))
    split = split_concatenations(traced, most)
    assert longest(split) == min(count, most)
    assert (split is traced) == (count <= most)
    assert split.result_types == traced.result_types


def test_those_in_loops_are_split_too() -> None:
    def body(k: Any, state: Any) -> Any:
        return lax.concatenate([state[:, i : i + 1] for i in range(9)], 1)

    x = np.arange(18.0).reshape(2, 9)
    traced = graph(lambda x: (lax.fori_loop(0, 3, body, x),), type_of(x))
    assert longest(traced) == 9 and longest(split_concatenations(traced, 4)) == 4


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("rank", [1, 5])
def test_kernels_have_few_parameters(rank: int, cupy: Any) -> None:
    shape = (2, 1, 3, 1, 2)[:rank]
    arrays = [np.full(shape, k, np.float32) for k in range(300)]
    operands = [xarr.asarray(each).T + 1 for each in arrays]
    assert_same(np.asarray(xarr.concatenate(operands)), np.concatenate([each.T + 1 for each in arrays]))
    texts = [text for text in device(cupy).texts if "__global__" in text]
    heads = [line for text in texts for line in text.splitlines() if "__global__" in line]
    assert heads and max(head.count(",") for head in heads) < 512
