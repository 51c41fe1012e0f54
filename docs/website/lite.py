"""The lessons as notebooks that run in the browser: JupyterLite, built into the site, behind a button of each lesson.

`jupyter lite build` is called here and not by jupyterlite-sphinx, which adds a script of its own and a font of Google's
to every page of a site, and builds six applications where one is asked for.
"""

from __future__ import annotations

import doctest
import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from website.play import load_script

DOCS: Final = Path(__file__).resolve().parents[1]
#: Where JupyterLite lies in the site, and the application of it that shows one notebook.
FOLDER: Final = "lite"
APPLICATION: Final = "notebooks"
#: Seconds that building may take.
PATIENCE: Final = 240
#: Says in a notebook what of Python could not be loaded: the script, the seconds that an answer may take, and those in
#: which a first cell must have run.
NOTICE: Final = "notice.js"
ANSWER_WAIT: Final = 20
CELL_WAIT: Final = 180
#: Where the kernel loads from what Pyodide lacks.
PACKAGE_INDEX: Final = "https://pypi.org/pypi/comm/json"

_LESSON: Final = re.compile(r"learn/\d\w+")
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CODE: Final = re.compile(
    r"^```(?P<kind>pycon|\{code-cell\} python)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]*\.md[^)]*\)")
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\(\.\./(images/[^)]+\.svg)\)")
_PYODIDE: Final = re.compile(r'"(https://[^"]*/pyodide/[^"]*/pyodide\.mjs)"')
_TITLE: Final = re.compile(r"^# .*\n", re.MULTILINE)
_BUTTON: Final = """
<p class="try-lesson"><a class="btn btn-sm btn-outline-primary" target="_blank" rel="noopener"
href="{root}{folder}/{application}/index.html?path={path}">Try it as a notebook</a>
<small>Loads JupyterLite from this site, and Python, NumPy and ml_dtypes for the browser from cdn.jsdelivr.net and
pypi.org, some 30 MB at first; nothing of it before you press.</small></p>
"""


class LiteError(Exception):
    """JupyterLite could not be built, or lacks something."""


# --- lessons ----------------------------------------------------------------------------------------------------


def is_lesson(docname: str) -> bool:
    """Whether a page is a lesson, which has a notebook."""
    return _LESSON.fullmatch(docname) is not None


def add_button(text: str, docname: str) -> str:
    """A lesson with a button below its title that opens it as a notebook."""
    button = _BUTTON.format(
        root="../" * docname.count("/"),
        folder=FOLDER,
        application=APPLICATION,
        path=html.escape(quote(f"{docname}.ipynb", safe="")),
    )
    return _TITLE.sub(lambda title: title[0] + button, text, count=1)


def write_notebook(text: str, requirement: str) -> str:
    """A lesson as a notebook, which first installs `requirement`: a cell for each part of it, without outputs."""
    cells = list(_cells(_FRONT_MATTER.sub("", text)))
    title, *others = cells
    install = _cell("code", f"%pip install -q {requirement}")
    numbered = [{"id": f"cell-{number}", **each} for number, each in enumerate([title, install, *others])]
    kernel = {"kernelspec": {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}}
    return json.dumps({"cells": numbered, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cells(text: str) -> Iterator[dict[str, Any]]:
    end = 0
    for fence in _CODE.finditer(text):
        yield from _prose(text[end : fence.start()])
        if fence["kind"] == "pycon":
            yield from _examples(fence["code"])
        else:
            yield _cell("code", fence["code"])
        end = fence.end()
    yield from _prose(text[end:])


def _prose(text: str) -> Iterator[dict[str, Any]]:
    """A cell of Markdown, if there is any; other pages are not there to link to."""
    if text.strip():
        yield _cell("markdown", _LINK.sub(r"\1", text))


def _examples(code: str) -> Iterator[dict[str, Any]]:
    """A cell for each example that shows something, with the statements before it."""
    source = ""
    for example in doctest.DocTestParser().get_examples(code):
        source += example.source
        if example.want:
            yield _cell("code", source, raises=example.exc_msg is not None)
            source = ""
    if source:
        yield _cell("code", source)


def _cell(kind: str, source: str, raises: bool = False) -> dict[str, Any]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    metadata = {"tags": ["raises-exception"]} if raises else {}
    return {"cell_type": kind, "metadata": metadata, "source": source.strip("\n"), **code}


def find_lessons() -> list[Path]:
    """The lessons that have a notebook."""
    return [path for path in sorted((DOCS / "learn").glob("*.md")) if is_lesson(f"learn/{path.stem}")]


def write_contents(folder: Path, requirement: str) -> None:
    """Write a notebook of each lesson, and the pictures that they show, which JupyterLite reads as ASCII alone."""
    (folder / "learn").mkdir(parents=True)
    for path in find_lessons():
        text = path.read_text(encoding="utf-8")
        (folder / "learn" / f"{path.stem}.ipynb").write_text(
            write_notebook(text, requirement), encoding="utf-8"
        )
        for image in _IMAGE.findall(text):
            picture = (DOCS / image).read_text(encoding="utf-8").encode("ascii", "xmlcharrefreplace")
            (folder / image).parent.mkdir(parents=True, exist_ok=True)
            (folder / image).write_bytes(picture)


# --- the wheel --------------------------------------------------------------------------------------------------


def write_wheel(folder: Path) -> Path:
    """A wheel of xarr as this Python imports it, and of the two backends that need no compiler."""
    about = distribution("xarr")
    stem = f"xarr-{about.version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    load_script().pack_library(wheel)
    tags = "Wheel-Version: 1.0\nGenerator: xarr\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{stem}.dist-info/METADATA", about.read_text("METADATA") or "")
        file.writestr(f"{stem}.dist-info/WHEEL", tags)
        lines = [_record(name, file.read(name)) for name in file.namelist()]
        file.writestr(f"{stem}.dist-info/RECORD", "".join([*lines, f"{stem}.dist-info/RECORD,,\n"]))
    return wheel


def _record(name: str, content: bytes) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


# --- the site ---------------------------------------------------------------------------------------------------


def build(output: Path) -> None:
    """Build JupyterLite with the lessons and xarr into a folder; LiteError says what went wrong."""
    with tempfile.TemporaryDirectory() as work:
        wheel = write_wheel(Path(work))
        write_contents(Path(work) / "contents", f"xarr=={distribution('xarr').version}")
        options = {"lite-dir": work, "contents": f"{work}/contents", "output-dir": str(output)}
        options |= {"apps": APPLICATION, "piplite-wheels": str(wheel)}
        command = [sys.executable, "-m", "jupyterlite_core", "build"]
        command += [part for name, value in options.items() for part in (f"--{name}", value)]
        command += ["--no-sourcemaps", "--no-unused-shared-packages"]
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    if done.returncode:
        raise LiteError(
            f"`jupyter lite build` ended with status {done.returncode}; pip install -e '.[docs]' brings it:\n"
            f"{done.stdout}{done.stderr}"
        )
    add_notice(output)
    check(output)


def add_notice(output: Path) -> None:
    """Let notebooks say what could not be loaded; LiteError where it is not known from where they load Python."""
    scripts = sorted((output / "extensions").rglob("*.js"))
    texts = (path.read_text(encoding="utf-8") for path in scripts)
    named = next(filter(None, map(_PYODIDE.search, texts)), None)
    if named is None:
        raise LiteError(
            f"JupyterLite names no address of pyodide.mjs in its {len(scripts)} scripts of extensions"
        )
    page = output / APPLICATION / "index.html"
    text = page.read_text(encoding="utf-8")
    tag = write_notice_tag([named[1], PACKAGE_INDEX])
    page.write_text(text.replace("</head>", f"{tag}\n</head>", 1), encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name(NOTICE), output / NOTICE)


def write_notice_tag(sources: Sequence[str], wait: float = ANSWER_WAIT, patience: float = CELL_WAIT) -> str:
    """The tag of the notice, beside a notebook's other scripts."""
    listed = html.escape(" ".join(sources))
    return (
        f'<script src="../{NOTICE}" data-sources="{listed}" data-wait="{wait:g}" data-patience="{patience:g}" '
        f'data-shapes="../../play/index.html"></script>'
    )


def check(output: Path) -> None:
    """Refuse a folder that lacks a notebook, its listing, the wheel, or the configuration that finds the wheel."""
    names = [path.stem for path in find_lessons()]
    listing = _read(output / "api" / "contents" / "learn" / "all.json")
    listed = {each["name"] for each in listing["content"]}
    settings = _read(output / "jupyter-lite.json")["jupyter-config-data"]["litePluginSettings"]
    urls = settings["@jupyterlite/pyodide-kernel-extension:kernel"]["pipliteUrls"]
    indices = [_read(output / url.partition("?")[0]) for url in urls if "://" not in url]
    files = [
        output / "pypi" / each["filename"]
        for index in indices
        for releases in index.get("xarr", {"releases": {}})["releases"].values()
        for each in releases
    ]
    wanted = [output / "files" / "learn" / f"{name}.ipynb" for name in names]
    page = output / APPLICATION / "index.html"
    wanted += [page, output / NOTICE, *files]
    missing = [str(path.relative_to(output)) for path in wanted if not path.is_file()]
    if page.is_file() and f"../{NOTICE}" not in page.read_text(encoding="utf-8"):
        missing.append(f"{NOTICE} in its page")
    missing += [f"{name}.ipynb in the listing" for name in names if f"{name}.ipynb" not in listed]
    if not files:
        missing.append("a wheel of xarr in an index")
    if missing:
        raise LiteError(f"JupyterLite lacks {', '.join(missing)}")


def _read(path: Path) -> Any:
    if not path.is_file():
        raise LiteError(f"JupyterLite lacks {path.name}")
    return json.loads(path.read_text(encoding="utf-8"))


def link_notebook(app: Any, docname: str, source: list[str]) -> None:
    """Add the button to a lesson that Sphinx reads."""
    if app.builder.format == "html" and is_lesson(docname):
        source[0] = add_button(source[0], docname)


def write_lite(app: Any, exception: Exception | None) -> None:
    """Build JupyterLite into the output."""
    if exception is None and app.builder.format == "html":
        build(Path(app.outdir) / FOLDER)
