"""The reference of the site: docstrings become reStructuredText, each public name is listed, examples run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.sources import NAMESPACES, functions
from xarr import Array

sys.path.insert(0, str(CHECKOUT / "docs"))

from operation_rows import rows
from website import examples, operations, reference
from website.docstrings import annotation_text, annotations, escape, to_rst
from website.writing import slug, write


def test_a_docstring_becomes_paragraphs_and_parameters() -> None:
    docstring = """Sums of `x` over *all* windows_.

    x, size: arrays of any type,
        of one shape.  mode: "fill" or "clip".
    note: is no parameter.

    Returns an array.  Raises ShapeError.  Source: XLA.

    * C1: one_
    * C2: two
      lines

    >>> 1 + 1
    2
    """
    parameters = {"x": "Array", "size": "", "mode": "str", "axis": "int | None", "more": ""}
    assert to_rst(docstring, parameters, "Array") == [
        *(r"Sums of ``x`` over \*all\* windows\_.", ""),
        *(r"* C1: one\_", "* C2: two lines", ""),
        *(">>> 1 + 1", "2", ""),
        ":param x: ``Array``: arrays of any type, of one shape.",
        ":param size: arrays of any type, of one shape.",
        ':param mode: ``str``: "fill" or "clip". note: is no parameter.',
        ":param axis: ``int | None``",
        ":param more: ",
        ":returns: ``Array``: an array.",
        *("", "**Raises** ShapeError.", "", "**Source** XLA.", ""),
    ]


def test_lined_up_columns_stay_as_they_are() -> None:
    assert to_rst("a    b\nc    d", {}) == ["::", "", "   a    b", "   c    d", "", ""]


def test_numpy_s_sections_are_left_to_its_own_pages() -> None:
    docstring = (
        "f(x)\n\nDraw.\n\nParameters\n----------\nx : int\n    It.\n\nNotes\n-----\nLong.\n\nSource: NumPy."
    )
    assert to_rst(docstring, {}) == ["f(x)", "", "Draw.", "", "", "**Source** NumPy.", ""]


def test_types_stand_as_they_are_written() -> None:
    class Box:
        def put(self, x: Array, size: int | None = None, *others, axis: int = 0) -> Box: ...  # type: ignore[no-untyped-def]

    wanted = {"x": "Array", "size": "int | None", "others": "", "axis": "int"}
    assert annotations(inspect.signature(Box.put)) == (wanted, "Box")
    assert (annotation_text(int), annotation_text(inspect.Signature.empty)) == ("int", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("*args", r"\*args"),
        ("[3]_", r"[3]\_"),
        ("a|b", r"a\|b"),
        ("`a_*`", "``a_*``"),
        ("``a``", "``a``"),
        ("so::", "so:"),
    ],
)
def test_marks_of_restructuredtext_are_escaped(text: str, wanted: str) -> None:
    assert escape(text) == wanted


def test_examples_are_found_by_name() -> None:
    fences = "```pycon\n>>> 1\n1\n\n```\n\nIn words:\n\n```pycon\n>>> 2\n2\n```"
    text = f"# Title\n\n## `xarr.add`\n\n{fences}\n\n## `xarr.sub`\n"
    (add, sub) = examples.split_examples(text)
    assert (add[0], sub) == ("xarr.add", ("xarr.sub", ""))
    block = [".. code-block:: pycon", ""]
    assert examples.example_to_rst(add[1]) == [
        *(*block, "   >>> 1", "   1", "", ""),
        *("In words:", "", *block, "   >>> 2", "   2", ""),
    ]


def test_two_examples_of_one_function_are_refused() -> None:
    with pytest.raises(ValueError, match=r"two examples of xarr\.add"):
        examples.split_examples("## `xarr.add`\na\n## `xarr.add`\nb\n")


def test_marks_of_blank_lines_are_not_shown() -> None:
    fence = "```pycon\n>>> f()\na\n<BLANKLINE>\nb\n\n```"
    assert examples.example_to_rst(fence)[2:] == ["   >>> f()", "   a", "", "   b", "", ""]


def test_names_of_one_function_share_its_example() -> None:
    shared = examples.find_example("xarr.absolute", xarr.absolute)
    assert shared == examples.find_example("xarr.abs", xarr.abs) == examples.read_examples()["xarr.abs"]
    assert examples.find_example("xarr.none", object()) is None


def names_without_example(namespace: str) -> list[str]:
    """The public names of a namespace that no example shows, by this or another name of the same object."""
    values = {name: getattr(import_module(namespace), name) for name in reference.names_of(namespace)}
    return [name for name, value in values.items() if not examples.find_example(f"{namespace}.{name}", value)]


@pytest.mark.parametrize("namespace", reference.NAMESPACES)
def test_every_public_name_has_an_example(namespace: str) -> None:
    assert names_without_example(namespace) == []


def test_a_name_without_example_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {name: text for name, text in examples.read_examples().items() if name != "xarr.fft.ifft"}
    monkeypatch.setattr(examples, "read_examples", lambda: shown)
    assert names_without_example("xarr.fft") == ["ifft"]


def names_without_numpy(shown: Mapping[str, str]) -> list[str]:
    """The functions of `xarr.lax` whose example says neither how NumPy says it nor that it cannot."""
    words = ("In NumPy's words:", "NumPy has no word for it")
    return [
        name
        for name, text in shown.items()
        if name.startswith("xarr.lax.") and not any(each in text for each in words)
    ]


def test_examples_of_lax_stand_in_numpy_s_words_too() -> None:
    assert names_without_numpy(examples.read_examples()) == []


def test_an_example_of_lax_without_numpy_is_found() -> None:
    assert names_without_numpy({"xarr.lax.add": ">>> 1", "xarr.add": ">>> 1"}) == ["xarr.lax.add"]


def test_examples_are_of_public_functions() -> None:
    known = {f"{name}.{each}" for name in reference.NAMESPACES for each in reference.names_of(name)}
    assert examples.read_examples().keys() <= known


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda module: module.__name__)
def test_every_function_is_listed_once(namespace: ModuleType) -> None:
    groups = reference.group_by_subject(namespace)
    listed = [name for names in groups.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert {name for name, _ in functions(namespace)} <= set(listed)


def test_pages_are_written_once(tmp_path: Path) -> None:
    reference.write_pages(tmp_path / "reference")
    page = tmp_path / "reference" / "xarr.lax.rst"
    text = page.read_text(encoding="utf-8")
    assert "   broadcast_in_dim\n" in text
    page.chmod(0o400)
    write(page, text)
    (index,) = (tmp_path / "reference").glob("index.rst")
    assert all(f"   {name}\n" in index.read_text(encoding="utf-8") for name in reference.NAMESPACES)


def test_every_operation_has_a_page(tmp_path: Path) -> None:
    operations.write_pages(tmp_path)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.rst")}
    assert pages.keys() == {"index", *(slug(row.operation) for row in rows())}
    gather = pages["gather"]
    assert "slice_sizes: the size" not in gather  # The function's docstring is Sphinx's to read.
    for part in (
        ".. autofunction:: xarr.lax.gather",
        "/images/explanations/gather.svg",
        "   def gather(",
        "C21:",
    ):
        assert part in gather
    assert "   def decompose(" in pages["batch_norm_training"]
    assert all(
        "As the reference backend computes it" in text for name, text in pages.items() if name != "index"
    )


def test_slugs_are_names_of_files() -> None:
    assert slug("Conditional(branch_index)") == "conditional_branch_index"
