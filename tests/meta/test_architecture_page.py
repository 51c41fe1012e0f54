"""`docs/images/parts.svg` is the picture of the imports as they are."""

from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.support.architecture import Tree
from tests.support.scripts import docs_script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return docs_script("make_architecture")


def test_picture_is_that_of_the_imports(script: ModuleType) -> None:
    assert script.PICTURE.read_text(encoding="utf-8") == script.page(), (
        "run: python docs/make_architecture.py"
    )


def test_a_new_import_changes_the_picture(script: ModuleType, tmp_path: Path) -> None:
    def graph(source: str) -> dict[str, set[str]]:
        path = tmp_path / "graph.py"
        path.write_text(source, encoding="utf-8")
        other = tmp_path / "core.py"
        other.write_text("import math", encoding="utf-8")
        imports: dict[str, set[str]] = script.imports_of_parts(
            Tree({"xarr.ir.graph": path, "xarr.lax.core": other})
        )
        return imports

    assert graph("import xarr.lax.core") == {"ir": {"lax"}, "lax": set()}
    assert graph("def late():\n    import xarr.lax.core") == {"ir": set(), "lax": set()}


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("xarr", "xarr/__init__.py"),
        ("xarr.dtypes", "base"),
        ("xarr.base.frozen_dataclasses", "base"),
        ("xarr.ir.ops.unary", "ir"),
        ("xarr.compiler.plan.arena", "compiler/plan"),
        ("xarr.compiler.programs", "compiler/pipeline.py"),
        ("xarr_numpy.ops.table", "backends/xarr_numpy"),
    ],
)
def test_part_of_a_module(script: ModuleType, module: str, part: str) -> None:
    assert script.part_of(module) == part


def test_cycles_share_a_box_and_implied_arrows_are_left_out(script: ModuleType) -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    merged = script.without_cycles(graph)
    assert merged == {"a": {"b\nc", "d"}, "b\nc": {"d"}, "d": set()}
    assert script.remove_implied(merged) == {"a": {"b\nc"}, "b\nc": {"d"}, "d": set()}


def test_an_arrow_bends_on_each_floor_that_it_passes(script: ModuleType) -> None:
    graph = {"a": {"b", "e"}, "b": {"c"}, "c": set(), "e": set()}
    floors, steps = script.route({**graph, "a": {"b", "e"}})
    assert floors[0][:2] == ["c", "e"] and floors[2] == ["a"]
    assert [part for part in floors[1] if part != "b"] == [bend for bend in steps["a"] if bend != "b"]
    assert all(part in steps for parts in floors for part in parts)
    drawing = ElementTree.fromstring(script.picture(graph))
    assert sum(child.tag.endswith("path") for child in drawing) == 4
    assert sum(child.tag.endswith("text") for child in drawing) == 4
