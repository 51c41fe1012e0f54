"""The script that assembles the page's folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.play_site import load_script

script = load_script("assemble")


@pytest.fixture
def pyodide(tmp_path: Path) -> Path:
    """A folder with files of the names that Pyodide's core has."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for name in script.CORE:
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_the_folder_has_all_that_the_page_asks_for(tmp_path: Path, pyodide: Path) -> None:
    wheel, site = tmp_path / "x.whl", tmp_path / "site"
    wheel.write_bytes(b"wheel")
    script.assemble(site, pyodide, wheel)
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    sources = "".join(
        (site / name).read_text(encoding="utf-8") for name in ("index.html", "play.js", "python.js")
    )
    named = set(re.findall(r'"(?:\./)?(\w[\w/]*\.(?:html|css|m?js|json|py|whl))"', sources))
    assert {
        "style.css",
        "play.js",
        "python.js",
        "page.py",
        "xarr.whl",
        "examples.json",
        "gallery.html",
    } <= named
    assert named <= files
    assert f"v{script.VERSION}/full/" in sources and "@VERSION@" not in sources
    assert script.list_sizes(site)[0][0] == "examples.json"


def test_examples_are_answers_by_state(tmp_path: Path) -> None:
    script.write_examples(tmp_path)
    data = json.loads((tmp_path / "examples.json").read_text(encoding="utf-8"))
    assert [expression for expression, _ in data["examples"]] == [
        json.loads(key)["expression"] for key in data["answers"] if '"dims":"","order":"","op":null' in key
    ]
    gallery = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert gallery.count("<svg ") == len(data["examples"]) and "<script" not in gallery


def test_a_folder_without_pyodide_is_refused(
    tmp_path: Path, pyodide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_PYODIDE", str(pyodide))
    assert script.fetch_pyodide(tmp_path) == pyodide
    (pyodide / "pyodide.mjs").unlink()
    with pytest.raises(script.PyodideMissingError, match=r"lacks pyodide\.mjs of Pyodide 314"):
        script.fetch_pyodide(tmp_path)


def test_where_npm_gives_nothing_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XARR_PYODIDE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(script.PyodideMissingError, match="set XARR_PYODIDE=folder"):
        script.fetch_pyodide(tmp_path / "npm")


def test_texts_of_users_are_escaped_in_the_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = script.load_page()
    monkeypatch.setattr(page, "EXAMPLES", (("(2,) < (2,)", "<b>"),))
    monkeypatch.setattr(script, "load_page", lambda: page)
    script.write_examples(tmp_path)
    gallery = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert "(2,) &lt; (2,)" in gallery and "<b>" not in gallery
