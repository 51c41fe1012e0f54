"""Assemble the page in which you type two shapes: `python docs/play/assemble.py FOLDER`, then serve FOLDER.

The folder gets the page, Pyodide's core and a wheel of xarr, and needs no network.  Pyodide comes from the folder that
XARR_PYODIDE or --pyodide names, that is an unpacked npm package, or from npm (`npm pack`, 6.5 MB).
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Final

VERSION: Final = "314.0.7"
SOURCE: Final = Path(__file__).resolve().parent
CHECKOUT: Final = SOURCE.parents[1]

#: What of Pyodide a browser loads.
CORE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
#: The page's own files, copied as they are but for the version of Pyodide.
PAGE: Final = ("index.html", "style.css", "play.js", "python.js", "page.py")

_GALLERY: Final = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Gallery of broadcasts</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="style.css"></head>
<body><header><h1>Gallery of broadcasts</h1>
<p>The examples of <a href="index.html">the page in which you type two shapes</a>, drawn beforehand.</p></header>
<main>{items}</main></body></html>
"""


class PyodideMissingError(Exception):
    """Pyodide is neither in a folder that was named nor to be had from npm."""


def fetch_pyodide(folder: Path) -> Path:
    """The folder with Pyodide's core: that of XARR_PYODIDE, else npm's package, unpacked into `folder`."""
    named = os.environ.get("XARR_PYODIDE")
    if named:
        return check_pyodide(Path(named))
    unpacked = folder / "package"
    if not unpacked.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", f"pyodide@{VERSION}", "--pack-destination", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            raise PyodideMissingError(
                f"npm gave no pyodide@{VERSION} ({error}); set XARR_PYODIDE=folder"
            ) from error
        with tarfile.open(folder / f"pyodide-{VERSION}.tgz") as archive:
            archive.extractall(folder, filter="data")
    return check_pyodide(unpacked)


def check_pyodide(folder: Path) -> Path:
    """`folder`, which must hold the core."""
    missing = [name for name in CORE if not (folder / name).is_file()]
    if missing:
        raise PyodideMissingError(f"{folder} lacks {', '.join(missing)} of Pyodide {VERSION}")
    return folder


def build_wheel(folder: Path) -> Path:
    """A wheel of this checkout in `folder`, made by pip."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(CHECKOUT),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(folder.glob("xarr-*.whl"))


def load_page() -> ModuleType:
    """The module `page.py`, in this Python."""
    spec = importlib.util.spec_from_file_location("play_page", SOURCE / "page.py")
    assert spec is not None and spec.loader is not None, "the page lies beside this file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_examples(folder: Path) -> None:
    """Write the answers to the examples, which the page shows while Python loads, and the gallery without scripts."""
    page = load_page()
    known = page.answers()
    data = {"examples": page.EXAMPLES, "more": page.MORE_EXAMPLES, "answers": known}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (folder / "examples.json").write_text(text, encoding="utf-8")
    items = [
        f'<section class="card"><h2><code>{html.escape(expression)}</code>: {html.escape(title)}</h2>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Picture">{reply["svg"]}</div>'
        f'<pre class="scroll" tabindex="0">{html.escape(reply["text"])}</pre></section>'
        for expression, title in page.EXAMPLES
        for reply in [known[page.key(page.start(expression))]]
    ]
    (folder / "gallery.html").write_text(_GALLERY.format(items="\n".join(items)), encoding="utf-8")


def assemble(folder: Path, pyodide: Path, wheel: Path) -> None:
    """Fill `folder` with all that the page needs."""
    (folder / "pyodide").mkdir(parents=True, exist_ok=True)
    for name in PAGE:
        text = (SOURCE / name).read_text(encoding="utf-8").replace("@VERSION@", VERSION)
        (folder / name).write_text(text, encoding="utf-8")
    for name in CORE:
        shutil.copyfile(pyodide / name, folder / "pyodide" / name)
    shutil.copyfile(wheel, folder / "xarr.whl")
    write_examples(folder)


def list_sizes(folder: Path) -> list[tuple[str, int]]:
    """The files of the first load with their bytes, largest first."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "gallery.html"]
    return sorted(
        ((str(path.relative_to(folder)), path.stat().st_size) for path in files), key=lambda pair: -pair[1]
    )


def main() -> None:
    """Assemble the folder that the command line names, and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyodide", type=Path, help="an unpacked npm package of Pyodide")
    parser.add_argument("--wheel", type=Path, help="a wheel of xarr; else one is built")
    arguments = parser.parse_args()
    work = arguments.folder / ".work"
    try:
        pyodide = check_pyodide(arguments.pyodide) if arguments.pyodide else fetch_pyodide(work)
    except PyodideMissingError as error:
        parser.error(str(error))
    assemble(arguments.folder, pyodide, arguments.wheel or build_wheel(work))
    shutil.rmtree(work, ignore_errors=True)
    sizes = list_sizes(arguments.folder)
    for name, size in sizes:
        print(f"{size:>12,}  {name}")
    print(f"{sum(size for _, size in sizes):>12,}  the first load")
    print(f"serve it: python -m http.server --directory {arguments.folder}")


if __name__ == "__main__":
    main()
