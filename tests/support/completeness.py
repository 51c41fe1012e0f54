"""The parts of every operation in every layer, and where they are; the tests and `docs/make_operations.py` use it."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.support.graphs import CASES
from xarr import lax, stablehlo
from xarr.compiler.plan.planner import PLANNED
from xarr.ir.graph import Graph
from xarr.ir.op import Op

# `xarr.make_explicit` is the function.
_make_explicit: Any = importlib.import_module("xarr.explainers.explicit_program")

#: What stands in no case because XLA cannot run it like the others: the file that tries it.
TRIED_ELSEWHERE = {
    "CustomCall": "lax/test_custom_calls.py",
    **dict.fromkeys(
        (
            *("AfterAll", "AllGather", "AllReduce", "AllToAll", "CollectiveBroadcast", "CollectivePermute"),
            *(
                "CrossReplicaSum",
                "Infeed",
                "Outfeed",
                "PartitionId",
                "Recv",
                "ReduceScatter",
                "ReplicaId",
                "Send",
            ),
        ),
        "lax/test_collectives.py",
    ),
    "GetDimensionSize": "dynamic_cases.py",
    "SetDimensionSize": "dynamic_cases.py",
}

#: What no backend meets: the stage that rewrites it.
REWRITTEN = {"GetDimensionSize": "static", "SetDimensionSize": "static"}

#: What has no function of its own name: where such nodes come from.
WITHOUT_FUNCTION = {
    "Constant": "literals and every Python number",
    "Rng": "rng_uniform and rng_normal",
}

#: Modules of backends that only import the table.
_IMPORTERS = ("backend", "program")


def classes_in(graph: Graph) -> set[type[Op]]:
    """The ops of a graph and of the computations that they carry."""
    classes = {type(node.op) for node in graph.nodes}
    return classes.union(*(classes_in(inner) for node in graph.nodes for inner in node.op.graphs))


def is_composite(op: type[Op]) -> bool:
    """Whether the op is defined in terms of others, for some operands at least."""
    return op.decompose is not Op.decompose


@cache
def _tables(package: str) -> Mapping[str, Mapping[type[Op], Any]]:
    """The tables of a backend's package by module; none if there is no such package."""
    if importlib.util.find_spec(package) is None:
        return {}
    modules = {
        each.name: importlib.import_module(f"{folder}.{each.name}")
        for folder in (package, f"{package}.ops", f"{package}.sorts")
        if (spec := importlib.util.find_spec(folder)) is not None
        for each in pkgutil.iter_modules(spec.submodule_search_locations)
    }
    return {
        name: table
        for name, module in modules.items()
        for table in (getattr(module, "ROWS", None), getattr(module, "TABLE", None))
        if isinstance(table, Mapping)
    }


def entry(package: str, op: type[Op]) -> str | None:
    """The module of a backend that has a row for the op: the family's, not one that gathers all families.

    "plan" for ops of which plans make steps, which NumPy's backend runs.
    """
    if package == "xarr_numpy" and op in PLANNED:
        return "plan"
    tables = [(name, table) for name, table in _tables(package).items() if op in table]
    entries = [(len(table), name in _IMPORTERS, name) for name, table in tables]
    return min(entries)[2] if entries else None


def rule(package: str, op: type[Op]) -> Any:
    """The row of a backend for the op, in the module that `entry` names."""
    module = entry(package, op)
    return _tables(package)[module][op] if module is not None else None


@cache
def read_back() -> Mapping[type[Op], list[str]]:
    """The graph cases of each op that is printed and read back in them."""
    names: dict[type[Op], list[str]] = {}
    for name, case in CASES.items():
        for op in classes_in(case.graph) & classes_in(stablehlo.parse(str(case.graph)).main):
            names.setdefault(op, []).append(name)
    return names


def function(name: str) -> Any:
    """The function of `xarr.lax` called `name`, dots included; None if there is none."""
    member: Any = lax
    for part in name.split("."):
        member = getattr(member, part, None)
    return member


def has_function(name: str) -> bool:
    """Whether `xarr.lax` or `xarr.lax.linalg` has a function called so."""
    return callable(function(name)) or callable(function(f"linalg.{name}"))


def lax_names(op: type[Op]) -> tuple[str, ...]:
    """The name of the op in messages; a comparison has a name for each direction."""
    name: Any = op.lax_name
    return (name,) if isinstance(name, str) else ("eq", "ne", "ge", "gt", "le", "lt", "eq_to", "lt_to")


def gaps(op: type[Op]) -> list[str]:
    """List what the op still lacks, as lines that say what to do."""
    missing = []
    for package in ("xarr_reference", "xarr_numpy"):
        if entry(package, op) is None and not is_composite(op) and op.__name__ not in REWRITTEN:
            missing.append(f"a row in a table of backends/{package}, or Op.decompose")
    if op.assembly is Op.assembly:
        missing.append("Op.assembly, its StableHLO form")
    elif op not in read_back() and op.__name__ not in TRIED_ELSEWHERE:
        missing.append(
            "a graph in CASES of tests/support/graphs.py that reads back: a row of BUILDERS in "
            "xarr/ir/stablehlo/mnemonics.py reads it"
        )
    if not _make_explicit.is_spelled(op):
        missing.append("a row of _SPELLINGS in xarr/explainers/explicit_program.py")
    if op.__name__ not in WITHOUT_FUNCTION:
        missing += [f"the function xarr.lax.{name}" for name in lax_names(op) if not has_function(name)]
    return [f"{op.__name__} lacks {part}" for part in missing]
