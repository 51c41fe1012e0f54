"""Calls of functions under `shard_map` in functions that are recorded: a computation of parts in their graph."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xarr.arrays.array import Array
from xarr.backend import AbstractBackend
from xarr.communication.communicator import current_communicator
from xarr.communication.process_groups import AxisRef, Mesh
from xarr.compiler.pipeline import make_program
from xarr.compiler.programs import CompiledGraph
from xarr.distributed.shardings import NamedSharding
from xarr.distributed.simulation import run_parts
from xarr.errors import ArgumentError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.parts import Split
from xarr.ir.parts import join_parts, own_number, slices_of, take_part
from xarr.lax.tracing import results_of
from xarr.runtime import evaluation
from xarr.runtime.effects import keep_ordered
from xarr.runtime.handles import wrap
from xarr.transforms.traced import Traced

HostArray = np.ndarray[Any, Any]


def split_of(sharding: NamedSharding) -> Split:
    """The axes of each dimension, as attributes of operations have them."""
    return tuple([tuple(map(AxisRef, axes)) for axes in sharding.spec.axes])


def embed(
    traced: Traced,
    operands: Sequence[Node],
    mesh: Mesh,
    names: Sequence[str],
    splits: tuple[Sequence[Split], Sequence[Split]],
    is_inside: bool,
) -> list[Array]:
    """The leaves of the result of a function of parts, as whole arrays in the graph that is recorded.

    operands: whole arrays for the parameters of its graph.  names: the axes of the mesh that are split over.
    splits: of the first operands, those behind being whole, and of each leaf of the result.
    is_inside: whether the graph that is recorded is one of parts itself.
    """
    before = (*splits[0], *[()] * (len(operands) - len(splits[0])))
    pairs = dict.fromkeys(zip(traced.result_numbers, splits[1], strict=True))
    numbers, after = [number for number, _ in pairs], [split for _, split in pairs]
    graph = traced.graph.derive({}, [traced.graph.results[number] for number in numbers])
    if is_inside:
        results = _call_inside(graph, operands, mesh, before, after)
    else:
        size = current_communicator().size
        op = ops.ManualComputation(mesh, before, tuple(after), tuple(names), graph, Members, size)
        results = results_of(op, operands, len(numbers))
    order = {pair: number for number, pair in enumerate(pairs)}
    return [results[order[pair]] for pair in zip(traced.result_numbers, splits[1], strict=True)]


def _call_inside(
    graph: Graph, operands: Sequence[Node], mesh: Mesh, before: Sequence[Split], after: Sequence[Split]
) -> list[Array]:
    """The results where each member of the mesh has the operands: its own parts, the call, and what it makes whole."""
    own = own_number(is_partition=False)
    parts = [take_part(node, mesh, split, own) for node, split in zip(operands, before, strict=True)]
    ordered: list[Node] = []
    if parts:
        made = results_of(ops.Call(graph), parts, len(after))
    else:  # a call without operands would count as data from outside
        made = [wrap(node) for node in graph.inline(ordered=ordered)]
        keep_ordered(ordered)
    results = []
    for part, split in zip(made, after, strict=True):
        whole, collectives = join_parts(part._node, mesh, split, is_partition=False)
        keep_ordered(collectives)
        results.append(wrap(whole))
    return results


class Members:
    """A computation of parts as a program of one process runs it: a thread for each member of the mesh.

    A function of whole arrays on the host.
    """

    __name__ = "shard_map"

    def __init__(self, op: ops.ManualComputation, backend: AbstractBackend) -> None:
        self._op, self._backend = op, backend
        self._lock = threading.Lock()
        self._compiled: CompiledGraph | None = None

    def __call__(self, *arrays: HostArray) -> tuple[HostArray, ...]:
        world = current_communicator()
        if world.size > 1:
            raise ArgumentError(
                f"a program of one process runs in {world.name}, and the parts of a function under shard_map at its "
                "replicas; let the replicas compile it, in which it runs"
            )
        op, compiled = self._op, self._compile()
        ranks = range(len(op.mesh.rows(())))
        calls = []
        for rank in ranks:
            own = [
                array[slices_of(op.mesh, split, rank, array.shape)] if any(split) else array
                for array, split in zip(arrays, op.in_splits, strict=True)
            ]
            calls.append(partial(self._run, compiled, own))
        rows = run_parts(calls)
        return tuple([self._join(k, [row[k] for row in rows]) for k in range(len(op.out_splits))])

    def _compile(self) -> CompiledGraph:
        with self._lock:
            if self._compiled is None:
                self._compiled = make_program(self._op.computation, self._backend, hot=True)
            return self._compiled

    def _run(self, compiled: CompiledGraph, parts: Sequence[HostArray]) -> list[HostArray]:
        """The results of one member."""
        backend = self._backend
        values = evaluation.execute(compiled, [backend.from_host(np.asarray(part)) for part in parts])
        types = self._op.computation.result_types
        nodes = evaluation.results_of(compiled, types, range(len(types)), values, backend.device())
        return [np.asarray(wrap(node)) for node in nodes]

    def _join(self, number: int, parts: Sequence[HostArray]) -> HostArray:
        mesh, split = self._op.mesh, self._op.out_splits[number]
        if not any(split):
            return parts[0]
        shape = [size for size in parts[0].shape]
        for dim, axes in enumerate(split):
            shape[dim] *= len(mesh.rows(axes)[0])
        whole = np.empty(shape, parts[0].dtype)
        for rank, part in enumerate(parts):
            whole[slices_of(mesh, split, rank, shape)] = part
        return whole
