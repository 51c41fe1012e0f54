"""The page of docs/play in the site: lessons link to it, and it is assembled into the output."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.play_site import load_script

sys.path.insert(0, str(CHECKOUT / "docs"))

from website import play

LESSONS = sorted((CHECKOUT / "docs" / "learn").glob("[1-8]_*.md"))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_links_its_example_and_its_puzzles(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = re.findall(r'href="\.\./play/index\.html#([^"]*)"', play.add_links(text, "../"))
    queries = [dict(parse_qsl(unescape(link))) for link in links]
    page, examples = load_script("page"), [query for query in queries if "e" in query]
    assert len(examples) == 1
    state = {**page.start(examples[0]["e"]), "dims": examples[0].get("d", "")}
    assert '"svg"' in page.answer(page.key(state))
    numbers = [query["p"] for query in queries if "p" in query]
    outside_of_code = re.sub("`[^`]*`", "", text.rpartition("## Puzzles")[2])
    assert numbers == re.findall(r"\d+", outside_of_code) and numbers


def test_only_lessons_are_changed_and_only_in_html() -> None:
    text = '```{code-cell} python\nxarr.explain("(2,) + (2,)")\n```\n\n## Puzzles\n\n1 and `2`\n'
    for docname, builder, is_linked in (
        ("learn/1_x", "html", True),
        ("learn/1_x", "latex", False),
        ("a", "html", False),
    ):
        source = [text]
        play.link_lesson(SimpleNamespace(builder=SimpleNamespace(format=builder)), docname, source)
        assert ("play/index.html#e=(2,)%20%2B%20(2,)" in source[0]) is is_linked
        assert ("#p=1" in source[0]) is is_linked and "#p=2" not in source[0]
    assert play.add_links("```{code-cell} python\nxarr.ones(2)\n```\n", "") == (
        "```{code-cell} python\nxarr.ones(2)\n```\n"
    )


def test_dimensions_of_a_broadcast_are_linked() -> None:
    code = 'xarr.explain_broadcast((2, 3), (2,), op="+", broadcast_dimensions=(0,))'
    assert play.find_query(code) == "e=(2,%203)%20%2B%20(2,)&d=0"
    assert play.find_query("xarr.ones(2)") is None


def test_the_page_is_assembled_where_pyodide_is_not_to_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_PYODIDE", str(tmp_path / "nothing"))
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path / "site"))
    play.write_page(app, None)
    page = (tmp_path / "site" / "play" / "index.html").read_text(encoding="utf-8")
    assert 'href="../index.html"' in page
    app.outdir = str(tmp_path / "failed")
    play.write_page(app, ValueError("of Sphinx"))
    assert not (tmp_path / "failed").exists()
