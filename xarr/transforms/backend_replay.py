"""The function that runs a repeated call, made by a backend that has a faster one than Python can be."""

from __future__ import annotations

from xarr import lazy
from xarr.array import Array
from xarr.backend import Recipe
from xarr.config import current as config
from xarr.functions._core import observers
from xarr.ir.graph import Leaf, data_of
from xarr.transforms.python_replay import MISSED, Replay, static_types
from xarr.transforms.signature import Argument, Call
from xarr.transforms.traced import Traced


def by_backend(traced: Traced, call: Call) -> Replay | None:
    """What `replay` gives, made by the backend, where it can do that: for Arrays and floats, by position."""
    arguments, structure = call.signature.arguments, traced.structure
    compiled = traced.compiled()
    nodes = [traced.graph.results[place] for place in traced.places]
    taken, given = static_types(call.signature.types), static_types([node.type for node in nodes])
    is_flat = all(
        isinstance(each, Argument) and each.structure.container is None and isinstance(each.place, int)
        for each in arguments
    )
    is_simple = structure.container is None or (
        structure.container is tuple and all(child.container is None for child in structure.children)
    )
    if not (is_flat and is_simple and taken and given and None not in given and set(taken) != {None}):
        return None
    numbers = [(each.text[1:], each.dtype) for each in traced.numbers if each.kind is float]
    if (
        compiled.hidden
        or traced.definitions
        or traced.donation.leaves
        or not set(call.sources) <= {"Array", "number"}
    ):
        return None
    if len(numbers) < len(traced.numbers) or not all(place.isdecimal() for place, _ in numbers):
        return None
    settings, overridden = config.state()
    recipe = Recipe(
        *(Array, Leaf, traced.owner, MISSED, (lazy.recording, observers)),
        setting=(config.__dict__, "_global", settings),
        override=(config._overrides, overridden),
        arguments=taken,
        numbers=tuple([(int(place), dtype) for place, dtype in numbers]),
        results=tuple([(data_of(node.type), node.tensor_type, node._place) for node in nodes]),
        in_tuple=structure.container is tuple,
    )
    return traced.owner.replay(compiled.graph, traced.places, recipe)
