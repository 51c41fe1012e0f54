"""Assemble the page in which you type two shapes: `python docs/play/assemble.py FOLDER`, then serve FOLDER.

The folder gets the page, Pyodide's core and xarr, and needs no network.  Pyodide comes from the folder that
XARR_PYODIDE or --pyodide names, that is an unpacked npm package, or from npm (`npm pack`, 6.5 MB).  Where that folder
has the wheels of NumPy and ml_dtypes too, values need no network either.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import html
import importlib.util
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

VERSION: Final = "314.0.7"
SOURCE: Final = Path(__file__).resolve().parent

#: What of Pyodide a browser loads.
CORE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
#: What a reader asks for who wants values, as Pyodide calls it: npm's package lacks them.
PACKAGES: Final = ("numpy", "ml-dtypes", "typing-extensions")
NETWORK: Final = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
#: The page's own files.
PAGE: Final = (
    *("index.html", "style.css", "elements.js", "engine.js", "play.js", "puzzles.js", "python.js"),
    *("page.py", "puzzle_page.py"),
)
LIBRARY: Final = ("xarr", "xarr_numpy", "xarr_reference")

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


def find_packages(pyodide: Path) -> list[Path]:
    """The wheels of NumPy and what xarr needs beside it, where the folder of Pyodide has all of them; else none."""
    listed = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    wheels = [pyodide / listed[name]["file_name"] for name in PACKAGES]
    return wheels if all(wheel.is_file() for wheel in wheels) else []


def pack_library(archive: Path) -> None:
    """Pack xarr and its backends, as this Python imports them."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for package in LIBRARY:
            folder = folder_of(package)
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    file.write(path, path.relative_to(folder.parent))


def pack_shapes(archive: Path) -> None:
    """Pack the modules of xarr that can be imported without NumPy."""
    folder = folder_of("xarr")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in list_modules_without_numpy(folder):
            file.write(path, path.relative_to(folder.parent))


def folder_of(package: str) -> Path:
    """Where a package lies."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None, f"{package} is installed, or on the path"
    return Path(spec.origin).parent


def list_modules_without_numpy(folder: Path) -> list[Path]:
    """The modules of a package that import neither NumPy nor ml_dtypes when they are imported, nor one that does."""
    paths = {_name_module(path, folder): path for path in folder.rglob("*.py")}
    imports = {name: set(_imports(path, name)) for name, path in paths.items()}
    unusable = {"numpy", "ml_dtypes"}
    while True:
        more = {name for name, every in imports.items() if every & unusable} - unusable
        if not more:
            return sorted(path for name, path in paths.items() if name not in unusable)
        unusable |= more


def _name_module(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, name: str) -> Iterator[str]:
    """The modules that are imported with a module: those above it, and those that its statements name."""
    yield from _list_packages(name.rpartition(".")[0])
    for node in _run_at_import(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _list_packages(alias.name)
        else:
            assert isinstance(node, ast.ImportFrom) and node.module is not None, "imports are absolute"
            yield from _list_packages(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _list_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:i]) for i in range(1, len(parts) + 1))


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The import statements that run when a module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            is_for_types = ast.unparse(node.test).endswith("TYPE_CHECKING")
            yield from _run_at_import([*([] if is_for_types else node.body), *node.orelse])
        elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
            yield from _run_at_import(node.body)


def load_page(name: str = "page") -> ModuleType:
    """A module of the page, in this Python."""
    spec = importlib.util.spec_from_file_location(f"play_{name}", SOURCE / f"{name}.py")
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


def write_puzzles(folder: Path) -> None:
    """Write the tasks of the puzzles and their hints, which need no Python in the page."""
    text = json.dumps(load_page("puzzle_page").list_puzzles(), ensure_ascii=False, separators=(",", ":"))
    (folder / "puzzles.json").write_text(text, encoding="utf-8")


def assemble(folder: Path, pyodide: Path | None, home: str = "") -> None:
    """Fill `folder` with all that the page needs; without `pyodide` it shows its examples and tasks alone.

    `home` is the address of a site that the page belongs to, relative to it.
    """
    (folder / "pyodide").mkdir(parents=True, exist_ok=True)
    wheels = find_packages(pyodide) if pyodide is not None else []
    site = f'<a class="site" href="{html.escape(home)}">Documentation</a>' if home else ""
    if pyodide is not None:
        for path in (*(pyodide / name for name in CORE), *wheels):
            shutil.copyfile(path, folder / "pyodide" / path.name)
    pack_shapes(folder / "shapes.zip")
    pack_library(folder / "xarr.zip")
    texts = {name: (SOURCE / name).read_text(encoding="utf-8") for name in PAGE}
    digest = hashlib.sha256((folder / "shapes.zip").read_bytes() + "".join(texts.values()).encode())
    for name, text in texts.items():
        text = text.replace("@PACKAGES@", "pyodide/" if wheels else NETWORK).replace("<!--site-->", site)
        text = text.replace("@BUILD@", f"{VERSION}-{digest.hexdigest()[:16]}")
        (folder / name).write_text(text, encoding="utf-8")
    write_examples(folder)
    write_puzzles(folder)


def list_sizes(folder: Path) -> list[tuple[str, int]]:
    """The files of the first load with their bytes, largest first."""
    later = ("gallery.html", "xarr.zip")
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in later]
    files = [path for path in files if path.suffix != ".whl"]
    return sorted(
        ((str(path.relative_to(folder)), path.stat().st_size) for path in files), key=lambda pair: -pair[1]
    )


def main() -> None:
    """Assemble the folder that the command line names, and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyodide", type=Path, help="an unpacked npm package of Pyodide")
    arguments = parser.parse_args()
    work = arguments.folder / ".work"
    try:
        pyodide = check_pyodide(arguments.pyodide) if arguments.pyodide else fetch_pyodide(work)
    except PyodideMissingError as error:
        parser.error(str(error))
    assemble(arguments.folder, pyodide)
    shutil.rmtree(work, ignore_errors=True)
    sizes = list_sizes(arguments.folder)
    for name, size in sizes:
        print(f"{size:>12,}  {name}")
    print(f"{sum(size for _, size in sizes):>12,}  the first load")
    print(f"serve it: python -m http.server --directory {arguments.folder}")


if __name__ == "__main__":
    main()
