"""The lessons as notebooks of JupyterLite in the site: cells, button, wheel, what is refused, and the application.

The application is built where the `docs` extra is installed; elsewhere that test is skipped, and the build of the
documentation itself refuses a site that lacks something.
"""

from __future__ import annotations

import doctest
import hashlib
import json
import re
import sys
import zipfile
from base64 import urlsafe_b64encode
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.play_site import open_browser, serve

sys.path.insert(0, str(CHECKOUT / "docs"))

from website import lite

LESSONS = sorted((CHECKOUT / "docs" / "learn").glob("[1-8]_*.md"))
METADATA = "Metadata-Version: 2.4\nName: xarr\nVersion: 0.1.0\n"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed xarr, which a checkout on the path is not."""
    about = SimpleNamespace(version="0.1.0", read_text=lambda name: METADATA)
    monkeypatch.setattr(lite, "distribution", lambda name: about)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_notebook_has_all_code_and_all_words_of_its_lesson_in_order(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(lite.write_notebook(text, "xarr==0.1.0"))
    cells = [(each["cell_type"], each["source"]) for each in notebook["cells"]]
    assert cells[0][0] == "markdown" and cells[0][1].startswith("# ")
    assert cells[1] == ("code", "%pip install -q xarr==0.1.0")
    wanted = ""
    for kind, code in re.findall(r"```(pycon|\{code-cell\} python)\n(.*?)```", text, re.DOTALL):
        examples = doctest.DocTestParser().get_examples(code)
        wanted += "".join(each.source for each in examples) if kind == "pycon" else code
    assert "\n".join(code for kind, code in cells[2:] if kind == "code").split() == wanted.split()
    words = "\n".join(code for kind, code in cells if kind == "markdown")
    assert "```" not in words and ".md" not in words and "kernelspec" not in words
    for heading in re.findall("^#.*", text, re.MULTILINE):
        assert heading in words
    assert len({each["id"] for each in notebook["cells"]}) == len(cells)


def test_examples_end_a_cell_where_they_show_something_and_errors_do_not_end_all() -> None:
    text = (
        "---\nkernelspec:\n---\n# T [a](b.md) ![p](../images/q.svg)\n\n```pycon\n>>> x = 1\n>>> x\n1\n"
        ">>> 1 / 0\nTraceback (most recent call last):\n    ...\nZeroDivisionError: division by zero\n"
        ">>> y = 2\n\n```\nend\n"
    )
    cells = json.loads(lite.write_notebook(text, "xarr"))["cells"]
    assert [each["source"] for each in cells] == [
        *("# T a ![p](../images/q.svg)", "%pip install -q xarr"),
        *("x = 1\nx", "1 / 0", "y = 2", "end"),
    ]
    assert [each["metadata"] for each in cells if each["metadata"]] == [{"tags": ["raises-exception"]}]
    assert cells[3]["metadata"]


def test_only_lessons_get_the_button_below_their_title_and_only_in_html() -> None:
    for docname, builder, has_button in (
        ("learn/1_x", "html", True),
        ("learn/1_x", "latex", False),
        ("learn/quiz", "html", False),
        ("guide", "html", False),
    ):
        source = ["# Title\n\nText\n\n## Part\n"]
        lite.link_notebook(SimpleNamespace(builder=SimpleNamespace(format=builder)), docname, source)
        assert ("Try it as a notebook" in source[0]) is has_button
    button = lite.add_button("# Title\n\n# Text\n", "learn/1_x")
    assert button.startswith('# Title\n\n<p class="try-lesson">') and button.count("<a ") == 1
    assert 'href="../lite/notebooks/index.html?path=learn%2F1_x.ipynb"' in button
    assert "cdn.jsdelivr.net" in button and "<script" not in button and "<iframe" not in button


@pytest.mark.usefixtures("installed")
def test_the_wheel_records_what_it_has(tmp_path: Path) -> None:
    wheel = lite.write_wheel(tmp_path)
    assert wheel.name == "xarr-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        lines = file.read("xarr-0.1.0.dist-info/RECORD").decode().splitlines()
        for name, digest, size in [line.rsplit(",", 2) for line in lines]:
            names.remove(name)
            if digest:
                content = file.read(name)
                encoded = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={encoded}", len(content))
        assert names == set()
        assert file.read("xarr-0.1.0.dist-info/METADATA").decode() == METADATA
        assert {"xarr/__init__.py", "xarr_numpy/__init__.py"} <= set(file.namelist())


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _write_site(folder: Path) -> None:
    """Write what a build leaves and the check wants."""
    names = [f"{path.stem}.ipynb" for path in LESSONS]
    for name in names:
        _write(folder / "files" / "learn" / name, {})
    _write(folder / "api/contents/learn/all.json", {"content": [{"name": name} for name in names]})
    urls = ["./pypi/all.json?sha256=0", "https://pypi.example/all.json"]
    kernel = {"@jupyterlite/pyodide-kernel-extension:kernel": {"pipliteUrls": urls}}
    _write(folder / "jupyter-lite.json", {"jupyter-config-data": {"litePluginSettings": kernel}})
    _write(folder / "pypi/all.json", {"xarr": {"releases": {"0.1.0": [{"filename": "xarr.whl"}]}}})
    _write(folder / "pypi/xarr.whl", {})
    _write(folder / "notebooks/index.html", {})


def test_a_site_that_lacks_something_is_refused(tmp_path: Path) -> None:
    _write_site(tmp_path)
    lite.check(tmp_path)
    first = LESSONS[0].stem
    for name, words in (
        ("pypi/xarr.whl", "lacks pypi/xarr.whl"),
        (f"files/learn/{first}.ipynb", f"lacks files/learn/{first}.ipynb"),
        ("notebooks/index.html", "lacks notebooks/index.html"),
        ("jupyter-lite.json", "lacks jupyter-lite.json"),
        ("pypi/all.json", "lacks all.json"),
    ):
        _write_site(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(lite.LiteError, match=words):
            lite.check(tmp_path)
    _write_site(tmp_path)
    _write(tmp_path / "pypi/all.json", {})
    _write(tmp_path / "api/contents/learn/all.json", {"content": []})
    with pytest.raises(lite.LiteError, match=rf"{first}\.ipynb in the listing.*a wheel of xarr in an index"):
        lite.check(tmp_path)


@pytest.mark.usefixtures("installed")
def test_a_build_that_fails_says_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(lite.LiteError, match=r"status 1; pip install -e '\.\[docs\]'"):
        lite.build(tmp_path / "lite")
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    lite.write_lite(app, ValueError("of Sphinx"))
    app.builder.format = "latex"
    lite.write_lite(app, None)


@pytest.mark.skipif(
    find_spec("jupyterlite_core") is None or find_spec("jupyterlite_pyodide_kernel") is None,
    reason="needs jupyterlite-core and jupyterlite-pyodide-kernel: pip install -e '.[docs]'",
)
@pytest.mark.usefixtures("installed")
def test_the_application_opens_a_lesson_without_a_network(tmp_path: Path) -> None:
    """All but its kernel, which comes from elsewhere."""
    lite.build(tmp_path)
    with serve(tmp_path) as address, open_browser() as browser:
        page = browser.new_page()
        page.goto(f"{address}notebooks/index.html?path=learn%2F1_surprise.ipynb")
        page.wait_for_selector(".jp-CodeCell", timeout=120_000)
        page.wait_for_selector(".jp-Notebook img", timeout=60_000)
        text = page.locator(".jp-Notebook").inner_text()
        assert "%pip install -q xarr==0.1.0" in text and "Why (5,1) - (5,) is 25 numbers" in text
