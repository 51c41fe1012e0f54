"""The `>>>` examples of README.md and the pages in docs/ run and print what the pages say."""

import doctest
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT
from xarr.__main__ import main

pytestmark = pytest.mark.usefixtures("on_numpy", "fused")

#: What pages show besides what the suite cannot do without.
LIBRARIES = {"beyond_one_machine.md": ("dask.array", "xarray")}

DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])


def failures_in(text: str, name: str, start: int = 0) -> str:
    """The report of doctest about the Python fences of a Markdown page; empty if all examples hold.

    start: the number of lines of the page before `text`.
    """
    source = "\n".join(_lines_of_python_fences(text)) + "\n"
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, start)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    return "".join(report)


def failures_in_examples(text: str, name: str) -> str:
    """The report about a page of which each part with a heading stands alone, as a page of the reference shows it."""
    starts = [0, *(match.start() for match in re.finditer("^## ", text, re.MULTILINE)), len(text)]
    parts = [(text.count("\n", 0, start), text[start:end]) for start, end in pairwise(starts)]
    return "".join(failures_in(part, name, line) for line, part in parts)


def _lines_of_python_fences(text: str) -> Iterator[str]:
    # Other lines become empty instead of vanishing, so that doctest reports the page's line numbers
    # and takes the end of a fence for the end of the expected output.
    inside = False
    for line in text.splitlines():
        mark = line.lstrip()
        if mark.startswith("```"):
            inside = not inside and mark.startswith(("```py", "```{code-block} py"))
            yield ""
        else:
            yield line if inside else ""


@pytest.mark.implicit
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_examples_of_document(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES.get(path.name, ()):
        pytest.importorskip(library)
    if "dask.array" in LIBRARIES.get(path.name, ()):  # tasks run where the settings of the test hold
        monkeypatch.setitem(sys.modules["dask.config"].config, "scheduler", "synchronous")
    monkeypatch.chdir(tmp_path)
    check = failures_in_examples if path.parent.name == "examples" else failures_in
    report = check(path.read_text(encoding="utf-8"), path.name)
    assert not report, report


def test_right_example_passes_and_ends_with_its_fence() -> None:
    assert failures_in("# Page\n\n```pycon\n>>> 1 + 1\n2\n```\n\nText.\n", "page.md") == ""


def test_wrong_example_is_reported_with_its_line() -> None:
    assert "line 4" in failures_in("# Page\n\n```pycon\n>>> 1 + 1\n3\n```\n", "page.md")


def test_an_example_that_needs_another_one_is_reported_with_its_line() -> None:
    one, two = ("## `a`\n\n```pycon\n>>> x = 1\n```\n", "## `b`\n\n```pycon\n>>> x\n1\n```\n")
    assert failures_in(f"# Title\n\n{one}{two}", "page.md") == ""
    assert "line 11" in failures_in_examples(f"# Title\n\n{one}{two}", "page.md")


def test_examples_outside_python_fences_do_not_run() -> None:
    assert failures_in("```text\n>>> 1 + 1\n3\n```\n\n>>> 1 / 0\n", "page.md") == ""


def missing_paths(text: str, checkout: Path) -> list[str]:
    """Paths in backquotes, told by their slash and a first part that exists, that do not exist."""
    named = set(re.findall(r"`(\.?[\w-]+/[\w./-]*)`", text))
    inside = {path for path in named if (checkout / path.partition("/")[0]).is_dir()}
    return sorted(path for path in inside if not (checkout / path).exists())


def test_paths_in_the_guide_for_contributors_exist() -> None:
    guide = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert missing_paths(guide, CHECKOUT) == []


def test_missing_path_is_found(tmp_path: Path) -> None:
    (tmp_path / "xarr").mkdir()
    (tmp_path / "xarr" / "shapes.py").touch()
    text = "`xarr/shapes.py`, `xarr/gone.py`, `text/html` and `python -m xarr/other`"
    assert missing_paths(text, tmp_path) == ["xarr/gone.py"]


def test_the_explanations_in_the_readme_are_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for expression in ("(5,1) - (5,)", "(3,4) + (3,)"):
        main(["explain", expression])
        assert capsys.readouterr().out.strip() in text


def test_the_picture_in_the_readme_is_what_the_command_draws(tmp_path: Path) -> None:
    main(["explain", "(4,1) + (3,)", "--format", "svg", "--output", str(tmp_path / "explain.svg")])
    kept = CHECKOUT / "docs" / "images" / "explain.svg"
    assert (tmp_path / "explain.svg").read_text(encoding="utf-8") == kept.read_text(encoding="utf-8")


# --- links ---------------------------------------------------------------------------------------------------


def links_of(text: str) -> list[str]:
    """The targets of the links and pictures of a Markdown page, code left out."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub and MyST give the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """The relative links of a page that lead to no file, or to no heading in it."""
    broken = []
    for link in links_of(path.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        file = path.parent / target if target else path
        if re.match(r"\w+:", link) or (file.exists() and not anchor):
            continue
        if not file.exists() or anchor not in anchors_of(file.read_text(encoding="utf-8")):
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A *title*, long\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#a-title-long) [c](#here) ![d](gone.png) [e](https://example.org/x)\n"
        "[f](other.md#short) [g](#there) `[h](code.md)`\n```text\n[i](fence.md)\n```\n[](gone.md)\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["gone.png", "other.md#short", "#there", "gone.md"]


#: The README itself, and lists of pages.
_NOT_PAGES = ("README.md", "index.md", "contributing.md", "use.md", "reference.md", "inside.md")


def test_every_page_is_linked_from_the_readme() -> None:
    links = {(CHECKOUT / link).resolve() for link in links_of((CHECKOUT / "README.md").read_text("utf-8"))}
    pages = [path for path in DOCUMENTS if path.name not in _NOT_PAGES and "website" not in path.parts]
    assert [path.name for path in pages if path.resolve() not in links] == []


@pytest.mark.parametrize("folder", ["xarr/compiler", "backends/xarr_numpy", "backends/xarr_numpy/compiled"])
def test_the_page_on_the_engine_says_where_each_module_is(folder: str) -> None:
    text = (CHECKOUT / "docs" / "engine.md").read_text(encoding="utf-8")
    (listed,) = re.findall(rf"(?:is|are) in `{folder}/`:", text)
    table = text[text.index(listed) :].split("\n\n")[1]
    top = CHECKOUT / folder
    files = [path for path in top.rglob("*.py") if "compiled" not in path.relative_to(top).parts]
    packages = {path.parent.name for path in files if path.name == "__init__.py" and path.parent != top}
    assert set(re.findall("`([a-z_]+)`", table)) == {path.stem for path in files} - {"__init__"} | packages
