"""Write `docs/images/parts.svg` from the imports of the source: `python docs/make_architecture.py`.

A part is a folder of `xarr`, one of `xarr/compiler`, or a backend; modules that lie between folders belong to the parts
of `LOOSE`.  An arrow says that something in one part imports something in another when it is loaded; arrows that
others imply are left out, and parts that import one another share a box.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = CHECKOUT / "docs" / "images" / "parts.svg"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

from tests.support.architecture import Tree  # noqa: E402

#: Parts of modules beside the folders, and of folders that are one part.
LOOSE: Final = {
    **dict.fromkeys(("errors", "dtypes", "shapes", "tree", "tree_util"), "base"),
    **dict.fromkeys(("emath", "fft", "lib", "linalg", "polynomial", "random"), "linalg, fft, random …"),
    **dict.fromkeys(("doctor", "einops_backend", "pandas_groups", "debug"), "debug, doctor …"),
    **dict.fromkeys(("", "__main__"), "xarr/__init__.py"),
    "backend": "backend.py",
    "stablehlo": "stablehlo.py",
    "compiler.target": "compiler/target.py",
    **dict.fromkeys(("compiler.schedule", "compiler.memory_traffic"), "compiler/schedule.py"),
    **dict.fromkeys(
        ("compiler.pipeline", "compiler.programs", "compiler.object_cache"), "compiler/pipeline.py"
    ),
    **dict.fromkeys(
        ("compiler.sort_keys", "compiler.narrow_integers", "compiler.wide_products"), "compiler/passes"
    ),
}

_WIDTH: Final = 148
_HEIGHT: Final = 30
_GAP: Final = (16, 34)
_LINE: Final = 14
#: How names of bends begin, the points where arrows pass a floor.
_BEND: Final = "bend "

Graph = dict[str, set[str]]


def part_of(module: str) -> str:
    """The part of a module: "ir" of `xarr.ir.graph`, "compiler/plan" of `xarr.compiler.plan.arena`."""
    package, *parts = module.split(".")
    if package != "xarr":
        return f"backends/{package}"
    for count in (2, 1, 0):
        if (prefix := ".".join(parts[:count])) in LOOSE and len(parts) >= count and (count or not parts):
            return LOOSE[prefix]
    return "/".join(parts[:2] if parts[0] == "compiler" else parts[:1])


def imports_of_parts(tree: Tree) -> Graph:
    """Which parts each part imports; `xarr.compiler` itself holds nothing."""
    modules = tree.modules.keys() - {"xarr.compiler"}
    graph: Graph = {part_of(module): set() for module in modules}
    for one in tree.imports:
        if {one.importer, one.imported} <= modules and not one.in_function:
            graph[part_of(one.importer)].add(part_of(one.imported))
    return graph


def reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """The parts that `start` imports, directly or not."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        part = waiting.pop()
        if part not in seen:
            seen.add(part)
            waiting += graph[part]
    return seen


def without_cycles(graph: Graph) -> Graph:
    """The graph of groups of parts that import one another, by the names of the parts in lines."""
    below = {part: reachable(graph, part) for part in graph}
    name = {
        part: "\n".join(
            sorted(
                other for other in graph if other == part or (part in below[other] and other in below[part])
            )
        )
        for part in graph
    }
    merged: Graph = {group: set() for group in name.values()}
    for part, imported in graph.items():
        merged[name[part]] |= {name[other] for other in imported} - {name[part]}
    return merged


def remove_implied(graph: Graph) -> Graph:
    """The graph without arrows that longer ways imply."""
    return {
        part: {
            other
            for other in imported
            if not any(other in reachable(graph, third) for third in imported - {other})
        }
        for part, imported in graph.items()
    }


def floors_of(graph: Graph) -> list[list[str]]:
    """The parts by floor, lowest first: each is one above the highest that it imports."""
    floor: dict[str, int] = {}
    while len(floor) < len(graph):
        for part, imported in graph.items():
            if part not in floor and imported <= floor.keys():
                floor[part] = 1 + max((floor[other] for other in imported), default=-1)
    return [sorted(part for part in graph if floor[part] == k) for k in range(1 + max(floor.values()))]


def route(graph: Graph) -> tuple[list[list[str]], Graph]:
    """The floors, and the graph with a bend on each floor that an arrow passes: no arrow skips a floor.

    A bend is named "bend importer -> imported", and stands on one floor only; "\\f" numbers those of an arrow.
    """
    floors = floors_of(graph)
    floor = {part: number for number, parts in enumerate(floors) for part in parts}
    steps: Graph = {part: set() for part in graph}
    for part, imported in sorted(graph.items()):
        for other in sorted(imported):
            last = part
            for number in range(floor[part] - 1, floor[other], -1):
                bend = f"{_BEND}{part} -> {other}\f{number}"
                floors[number].append(bend)
                steps[last].add(bend)
                steps[bend], last = set(), bend
            steps[last].add(other)
    return floors, steps


def picture(graph: Graph) -> str:
    """The SVG of a graph without cycles, the lowest floor at the bottom."""
    floors, steps = route(graph)
    width = max(sum(_width(name) + _GAP[0] for name in names) for names in floors) + _GAP[0]
    boxes: dict[str, tuple[float, float, float]] = {}
    y = float(_GAP[1]) / 2
    for names in reversed(floors):
        height = max(_HEIGHT + _LINE * name.count("\n") for name in names if not name.startswith(_BEND))
        x = (width - sum(_width(name) + _GAP[0] for name in names) + _GAP[0]) / 2
        above = {name: [boxes[other][0] for other in boxes if name in steps[other]] for name in names}
        for name in sorted(
            names, key=lambda name: sum(above[name]) / len(above[name]) if above[name] else width / 2
        ):
            boxes[name] = x + _width(name) / 2, y, height
            x += _width(name) + _GAP[0]
        y += height + _GAP[1]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:.0f}" width="{width}" height="{y:.0f}" '
        'role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        "<title>The parts of the source and what they import</title>",
        f'<rect width="{width}" height="{y:.0f}" fill="#ffffff"/>',
    ]
    for name in sorted(steps):
        lines += [_arrow(name, other, boxes) for other in sorted(steps[name])]
    for name in sorted(graph):
        lines += _box(name, *boxes[name])
    return "\n".join([*lines, "</svg>", ""])


def _width(name: str) -> int:
    return 4 if name.startswith(_BEND) else _WIDTH


def _arrow(name: str, other: str, boxes: Mapping[str, tuple[float, float, float]]) -> str:
    x0, top, height = boxes[name]
    x1, y1, below = boxes[other]
    y0, bend = top + height, _GAP[1] / 2
    path = f"M{x0:.0f},{y0:.0f} C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}"
    if other.startswith(_BEND):
        path += f" V{y1 + below:.0f}"
    else:
        path += f" M{x1 - 3.5:.1f},{y1 - 6:.0f} L{x1:.0f},{y1:.0f} L{x1 + 3.5:.1f},{y1 - 6:.0f}"
    return f'<path d="{path}" fill="none" stroke="#7a8189" stroke-width="1.2"/>'


def _box(part: str, middle: float, y: float, height: float) -> list[str]:
    colour = "#fde9d0" if part.startswith("backends") else "#dcebf7" if "compiler" in part else "#eef3e6"
    names = part.split("\n")
    first = y + height / 2 + 4 - _LINE * (len(names) - 1) / 2
    return [
        f'<rect x="{middle - _WIDTH / 2:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{height}" rx="4" fill="{colour}" '
        'stroke="#8a9199"/>',
        *(
            f'<text x="{middle:.0f}" y="{first + _LINE * k:.0f}" text-anchor="middle">{escape(name)}</text>'
            for k, name in enumerate(names)
        ),
    ]


def page() -> str:
    """The picture of the source as it is."""
    return picture(remove_implied(without_cycles(imports_of_parts(Tree.of_checkout(CHECKOUT)))))


if __name__ == "__main__":
    PICTURE.write_text(page(), encoding="utf-8")
