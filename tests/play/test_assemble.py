"""The script that assembles the page's folder."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.play_site import load_script

script = load_script("assemble")


@pytest.fixture
def pyodide(tmp_path: Path) -> Path:
    """A folder with files of the names that Pyodide's core has, and a list of packages that it lacks."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for name in script.CORE:
        (folder / name).write_text(name, encoding="utf-8")
    packages = {name: {"file_name": f"{name}.whl"} for name in script.PACKAGES}
    (folder / "pyodide-lock.json").write_text(json.dumps({"packages": packages}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules that the page's first Python gets, unpacked."""
    folder = tmp_path_factory.mktemp("library")
    script.pack_shapes(folder / "shapes.zip")
    with zipfile.ZipFile(folder / "shapes.zip") as archive:
        archive.extractall(folder)
    return folder


def names_in(site: Path) -> set[str]:
    return {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}


def test_the_folder_has_all_that_the_page_asks_for(tmp_path: Path, pyodide: Path) -> None:
    site = tmp_path / "site"
    script.assemble(site, pyodide)
    sources = "".join((site / name).read_text(encoding="utf-8") for name in script.PAGE)
    named = set(re.findall(r'"(?:\./)?(\w[\w/]*\.(?:html|css|m?js|json|py|zip))"', sources))
    assert {"style.css", "play.js", "engine.js", "python.js", "page.py", "shapes.zip"} <= named
    assert {"xarr.zip", "examples.json", "puzzles.json", "gallery.html", "puzzle_page.py"} <= named
    assert named <= names_in(site)
    assert f"v{script.VERSION}/full/" in sources and "@PACKAGES@" not in sources and "@BUILD@" not in sources
    assert "<!--site-->" not in sources and "Documentation" not in sources
    sizes = dict(script.list_sizes(site))
    assert "xarr.zip" not in sizes and sizes["shapes.zip"] < 300_000


def test_another_source_is_another_build(
    tmp_path: Path, pyodide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers keep the memory of Python of one build."""
    builds = []
    for text in ("", "", "more = 1\n"):
        source = tmp_path / "source"
        shutil.copytree(script.SOURCE, source, dirs_exist_ok=True)
        (source / "page.py").write_text(
            (script.SOURCE / "page.py").read_text("utf-8") + text, encoding="utf-8"
        )
        monkeypatch.setattr(script, "SOURCE", source)
        script.assemble(tmp_path / "site", pyodide)
        monkeypatch.undo()
        python = (tmp_path / "site" / "python.js").read_text(encoding="utf-8")
        builds += re.findall(r'const build = "([^"]+)"', python)
    assert builds[0] == builds[1] != builds[2]


def test_a_site_is_linked_and_wheels_that_are_there_are_taken(tmp_path: Path, pyodide: Path) -> None:
    for name in script.PACKAGES:
        (pyodide / f"{name}.whl").write_text("wheel", encoding="utf-8")
    site = tmp_path / "site"
    script.assemble(site, pyodide, home="../index.html")
    assert {f"pyodide/{name}.whl" for name in script.PACKAGES} <= names_in(site)
    assert 'new URL("pyodide/", here)' in (site / "python.js").read_text(encoding="utf-8")
    assert '<a class="site" href="../index.html">' in (site / "index.html").read_text(encoding="utf-8")
    (pyodide / "numpy.whl").unlink()
    assert script.find_packages(pyodide) == []


def test_without_pyodide_the_folder_has_examples_and_tasks(tmp_path: Path) -> None:
    script.assemble(tmp_path, None)
    assert not any(name.startswith("pyodide/") for name in names_in(tmp_path))
    assert {"index.html", "examples.json", "puzzles.json", "gallery.html"} <= names_in(tmp_path)


def test_modules_without_numpy_are_all_that_the_page_needs(library: Path) -> None:
    """Both modules of the page, every example and every puzzle that asks for a shape run on them alone."""
    code = (
        f"import json, sys\nsys.path = [{str(library)!r}, {str(script.SOURCE)!r}, *sys.path[1:]]\n"
        "class Absent:\n    def find_spec(name, *_):\n"
        "        if name in ('numpy', 'ml_dtypes', 'llvmlite'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent)\nimport xarr, page, puzzle_page\n"
        f"assert xarr.__file__.startswith({str(library)!r}), xarr.__file__\n"
        "page.warm_up()\nprint(len(page.answers()))\n"
        "for one in puzzle_page.PUZZLES:\n    if one.is_shape:\n"
        "        for answer in (one.solution, one.wrong[0].answer):\n"
        "            print(puzzle_page.check(json.dumps({'number': one.number, 'answer': answer})))\n"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    replies = [json.loads(line) for line in run.stdout.splitlines()[1:]]
    assert [reply["passed"] for reply in replies] == [True, False] * 9
    assert sum("<svg" in step["svg"] for reply in replies for step in reply["steps"]) == 9


def test_modules_with_numpy_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "plain.py": "import json\n",
        "late.py": "def f():\n    import numpy\n",
        "typed.py": "if TYPE_CHECKING:\n    import numpy\n",
        "direct.py": "import numpy as np\n",
        "tried.py": "try:\n    import ml_dtypes.x\nexcept ImportError:\n    pass\n",
        "indirect.py": "from package import direct\n",
        "far.py": "from package.indirect import x\n",
        "inner/__init__.py": "import numpy\n",
        "inner/below.py": "",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    kept = [path.name for path in script.list_modules_without_numpy(folder)]
    assert kept == ["__init__.py", "late.py", "plain.py", "typed.py"]


def test_tasks_have_hints_that_end_with_a_solution(tmp_path: Path) -> None:
    script.write_puzzles(tmp_path)
    puzzles = json.loads((tmp_path / "puzzles.json").read_text(encoding="utf-8"))
    assert [one["number"] for one in puzzles] == list(range(1, 37))
    assert all(one["hints"][2].startswith("one solution: ") for one in puzzles)
    assert not any(one["hints"][2][14:] in " ".join(one["hints"][:2]) for one in puzzles)
    assert [one["number"] for one in puzzles if not one["needs_numpy"]] == [*range(1, 7), 31, 32, 33]
    assert all(bool(one["loops"]) is one["needs_numpy"] for one in puzzles)


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
