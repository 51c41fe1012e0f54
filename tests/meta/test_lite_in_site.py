"""The lessons as notebooks of JupyterLite in the site: cells, button, wheel, what is refused, and the application.

The application is built where the `docs` extra is installed; elsewhere that test is skipped, and the build of the
documentation itself refuses a site that lacks something.
"""

from __future__ import annotations

import doctest
import hashlib
import json
import os
import re
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.contrast import LOW_CONTRAST
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
    _write(folder / "notebooks/index.html", {"head": '<script src="../notice.js">'})
    _write(folder / "notice.js", {})


def test_a_site_that_lacks_something_is_refused(tmp_path: Path) -> None:
    _write_site(tmp_path)
    lite.check(tmp_path)
    first = LESSONS[0].stem
    for name, words in (
        ("pypi/xarr.whl", "lacks pypi/xarr.whl"),
        (f"files/learn/{first}.ipynb", f"lacks files/learn/{first}.ipynb"),
        ("notebooks/index.html", "lacks notebooks/index.html"),
        ("notice.js", "lacks notice.js"),
        ("jupyter-lite.json", "lacks jupyter-lite.json"),
        ("pypi/all.json", "lacks all.json"),
    ):
        _write_site(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(lite.LiteError, match=words):
            lite.check(tmp_path)
    _write_site(tmp_path)
    _write(tmp_path / "notebooks/index.html", {})
    with pytest.raises(lite.LiteError, match=r"lacks notice\.js in its page"):
        lite.check(tmp_path)
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


# --- what could not be loaded ---------------------------------------------------------------------------------------

#: A page of JupyterLite, as far as the notice looks at it.
NOTEBOOK = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Lesson</title>{tag}</head><body>'
    '<div class="jp-CodeCell"><div class="jp-InputPrompt">[*]:</div></div>'
    '<div class="jp-CodeCell"><div class="jp-InputPrompt">[ ]:</div></div></body></html>'
)
ELSEWHERE = "https://cdn.invalid/pyodide.mjs"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@contextmanager
def notebook(
    browser: Any, folder: Path, sources: list[str], wait: float = 5, patience: float = 60
) -> Iterator[Any]:
    """A narrow window with the notice and two cells, of which the first waits."""
    (folder / "notebooks").mkdir(exist_ok=True)
    copyfile(CHECKOUT / "docs" / "website" / lite.NOTICE, folder / lite.NOTICE)
    with serve(folder) as address:
        listed = [source.replace("HERE/", address) for source in sources]
        text = NOTEBOOK.format(tag=lite.write_notice_tag(listed, wait, patience))
        (folder / "notebooks" / "index.html").write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": 320, "height": 600})
        page.set_default_timeout(15_000)
        page.route("https://silent.invalid/*", lambda route: None)
        page.goto(f"{address}notebooks/index.html")
        yield page
        page.close()


def test_a_notebook_says_what_could_not_be_loaded_and_marks_cells_that_wait(
    browser: Any, tmp_path: Path
) -> None:
    with notebook(browser, tmp_path, [ELSEWHERE, "HERE/notice.js"]) as page:
        page.wait_for_selector(".xarr-missing.banner")
        said = page.inner_text(".banner")
        assert "no cell of this notebook runs" in said and "Missing: cdn.invalid (no connection)." in said
        assert "try again" in said and page.get_attribute(".banner a", "href") == "../../play/index.html"
        assert page.get_attribute(".banner", "role") == "alert"
        assert page.locator(".jp-CodeCell .xarr-missing").count() == 1
        page.evaluate("document.querySelectorAll('.jp-InputPrompt')[1].textContent = '[*]:'")
        page.wait_for_function("document.querySelectorAll('.jp-CodeCell .xarr-missing').length === 2")
        page.evaluate("document.querySelectorAll('.jp-InputPrompt')[0].textContent = '[1]:'")
        page.wait_for_function("document.querySelectorAll('.jp-CodeCell .xarr-missing').length === 1")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert page.evaluate(LOW_CONTRAST) == []
        page.click("text=close")
        assert page.locator(".banner").count() == 0


def test_a_source_that_never_answers_is_waited_for_with_a_bound(browser: Any, tmp_path: Path) -> None:
    with notebook(browser, tmp_path, ["https://silent.invalid/pyodide.mjs"], wait=0.4) as page:
        page.wait_for_selector(".xarr-missing.banner")
        assert "Missing: silent.invalid (no answer in 0.4 seconds)." in page.inner_text(".banner")


def test_nothing_is_said_where_python_comes_but_that_no_cell_has_run_for_long(
    browser: Any, tmp_path: Path
) -> None:
    with notebook(browser, tmp_path, ["HERE/notice.js"]) as page:
        page.wait_for_selector("html[data-python=reached]")
        assert page.locator(".xarr-missing").count() == 0
    with notebook(browser, tmp_path, ["HERE/notice.js"], patience=0.2) as page:
        page.wait_for_selector(".xarr-missing.banner")
        assert "No cell has run yet" in page.inner_text(".banner")


def test_a_notebook_without_the_notice_is_noticed(browser: Any, tmp_path: Path) -> None:
    with notebook(browser, tmp_path, [ELSEWHERE]) as page:
        page.route("**/notice.js", lambda route: route.fulfill(body=""))
        page.reload()
        page.wait_for_timeout(500)
        assert page.locator(".xarr-missing").count() == 0


def test_the_notice_asks_where_the_kernel_loads_from(tmp_path: Path) -> None:
    script = tmp_path / "extensions" / "kernel" / "static" / "716.js"
    script.parent.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "index.html").write_text("<html><head></head></html>", encoding="utf-8")
    with pytest.raises(lite.LiteError, match=r"names no address of pyodide\.mjs in its 0 scripts"):
        lite.add_notice(tmp_path)
    script.write_text('c=a.u||"https://cdn.example/pyodide/v1/full/pyodide.mjs",g=1', encoding="utf-8")
    lite.add_notice(tmp_path)
    page = (tmp_path / "notebooks" / "index.html").read_text(encoding="utf-8")
    assert (
        'data-sources="https://cdn.example/pyodide/v1/full/pyodide.mjs https://pypi.org/pypi/comm/json"'
        in page
    )
    assert (tmp_path / "notice.js").read_bytes() == (CHECKOUT / "docs/website/notice.js").read_bytes()


# --- the application ------------------------------------------------------------------------------------------------


@pytest.fixture
def application(tmp_path: Path, installed: None) -> Path:
    """JupyterLite with the lessons: of a built site, whose folder BUILT_SITE names, or built where it is installed."""
    site = os.environ.get("BUILT_SITE")
    if site:
        return Path(site) / lite.FOLDER
    if find_spec("jupyterlite_core") is None or find_spec("jupyterlite_pyodide_kernel") is None:
        pytest.skip("needs BUILT_SITE=folder of a built site, or JupyterLite: pip install -e '.[docs]'")
    lite.build(tmp_path)
    return tmp_path


def test_the_application_opens_a_lesson_without_a_network(application: Path, browser: Any) -> None:
    """All but its kernel, which comes from elsewhere: that is said."""
    with serve(application) as address:
        page = browser.new_page()
        page.goto(f"{address}notebooks/index.html?path=learn%2F1_surprise.ipynb")
        page.wait_for_selector(".xarr-missing.banner", timeout=60_000)
        assert "cdn.jsdelivr.net (no connection)" in page.inner_text(".banner")
        page.wait_for_selector(".jp-CodeCell", timeout=120_000)
        page.locator(".jp-CodeCell").first.click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_selector(".jp-CodeCell .xarr-missing:has-text('Not run')", timeout=60_000)
        page.wait_for_selector(".jp-Notebook img", timeout=60_000)
        text = page.locator(".jp-Notebook").inner_text()
        assert re.search(r"%pip install -q xarr==\d", text) and "Why (5,1) - (5,) is 25 numbers" in text
