"""The page in which one types two shapes, assembled and served for tests, and a browser that meets no network."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def load_script(name: str) -> ModuleType:
    """`docs/play/<name>.py` as a module."""
    spec = importlib.util.spec_from_file_location(f"play_{name}", CHECKOUT / "docs" / "play" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_pyodide(folder: Path) -> Path:
    """Pyodide's core; the tests are skipped where neither XARR_PYODIDE nor npm gives it."""
    script = load_script("assemble")
    try:
        folder_of_core: Path = script.fetch_pyodide(folder)
    except script.PyodideMissingError as error:
        pytest.skip(str(error))
    return folder_of_core


def has_packages() -> bool:
    """Whether the folder that XARR_PYODIDE names has NumPy and ml_dtypes for Pyodide too."""
    named = os.environ.get("XARR_PYODIDE")
    return bool(named and load_script("assemble").find_packages(Path(named)))


def assemble_site(folder: Path) -> Path:
    """The folder of the page; skipped where there is no Pyodide."""
    site = folder / "site"
    load_script("assemble").assemble(site, find_pyodide(folder / "npm"))
    return site


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the page was closed while something was loading
            self.close_connection = True


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The address of a server of `folder` on this machine."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless browser for which no other machine has an address; skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    options = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=executable, args=options)
        try:
            yield browser
        finally:
            browser.close()
