"""The stages of a jitted function, ahead of its first call: recorded, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xarr import tree
from xarr.base.frozen_dataclasses import record
from xarr.errors import InputError
from xarr.ir.graph import Graph
from xarr.transforms.lowering import Compiled, Lowered, ShapeDtypeStruct
from xarr.transforms.recording import run_call
from xarr.transforms.signature import BoundCall, Signature
from xarr.transforms.traced import Traced


@record
class Stage:
    """A function as it was recorded for one signature.  Source: jax.stages.Traced."""

    fun_name: str
    traced: Traced
    signature: Signature
    call: Callable[[tuple[Any, ...], dict[str, Any]], BoundCall]

    @property
    def graph(self) -> Graph:
        """The recorded graph; it prints as StableHLO."""
        return self.traced.graph

    @property
    def out_info(self) -> Any:
        """The result with a ShapeDtypeStruct for each array."""
        types = [self.graph.results[number].tensor_type for number in self.traced.result_numbers]
        return tree.unflatten(
            self.traced.structure, [ShapeDtypeStruct(type.shape, type.dtype) for type in types]
        )

    def lower(self) -> Lowered:
        """The graph on its way to the backend."""
        traced = self.traced
        return _Lowered(self.graph, traced.owner.backend, traced.captured, True, traced.donated, self)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result for these arguments.  Raises InputError for another signature than the recorded one."""
        call = self.call(args, kwargs)
        wanted, got = self.signature.arguments, call.signature.arguments
        if got != wanted:
            changes = "; ".join(call.signature.changes(self.signature))
            raise InputError(f"{self.fun_name} was compiled for {self.signature}: {changes}")
        return run_call(self.fun_name, self.traced, call)


@record
class _Lowered(Lowered):
    """A jitted function on its way to a backend."""

    origin: Stage | None = None

    @property
    def out_info(self) -> Any:
        """The result with a ShapeDtypeStruct for each array."""
        assert self.origin is not None
        return self.origin.out_info

    def compile(self) -> Compiled:
        """The program as a function of the arguments that it was lowered for.  Source: jax.stages.Lowered.compile."""
        assert self.origin is not None
        return Compiled(self.origin.run, self.origin.traced.compile().program.text)
