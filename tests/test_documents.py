"""The `>>>` examples of README.md and the pages in docs/ run and print what the pages say."""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT
from xarr.__main__ import main

DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])


def failures_in(text: str, name: str) -> str:
    """What doctest reports about the Python fences of a Markdown page; empty if all examples hold."""
    source = "\n".join(_lines_of_python_fences(text)) + "\n"
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    return "".join(report)


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
    monkeypatch.chdir(tmp_path)
    report = failures_in(path.read_text(encoding="utf-8"), path.name)
    assert not report, report


def test_right_example_passes_and_ends_with_its_fence() -> None:
    assert failures_in("# Page\n\n```pycon\n>>> 1 + 1\n2\n```\n\nText.\n", "page.md") == ""


def test_wrong_example_is_reported_with_its_line() -> None:
    assert "line 4" in failures_in("# Page\n\n```pycon\n>>> 1 + 1\n3\n```\n", "page.md")


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
    (tmp_path / "xarr" / "array.py").touch()
    text = "`xarr/array.py`, `xarr/gone.py`, `text/html` and `python -m xarr/other`"
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
