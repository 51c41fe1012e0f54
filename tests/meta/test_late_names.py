"""What `xarr` imports when it is first asked for."""

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xarr
from tests.support.scripts import docs_script

MODULES = {module: names for module, names in xarr._LATE_MODULES.items() if names}


@pytest.fixture(scope="module")
def script():
    return docs_script("make_late_names")


@pytest.mark.parametrize("module", MODULES)
def test_every_late_name_is_there(module):
    loaded = importlib.import_module(f"xarr.{module}")
    for name in MODULES[module]:
        assert getattr(xarr, name) is getattr(loaded, name)
        assert name in dir(xarr)


def test_the_table_is_up_to_date(script):
    assert script.TABLE.read_text(encoding="utf-8") == script.text(), "run: python docs/make_late_names.py"


def test_the_table_has_what_a_module_exports_and_single_names_and_modules(script):
    source = (
        "if _typing.TYPE_CHECKING:\n    from xarr import fft as fft\n"
        "    from xarr.numpy_api.mathematics.bits import *\n    from xarr.transforms.jit import jit as jit\n"
    )
    assert script.late_modules(source) == {
        "fft": [],
        "numpy_api.mathematics.bits": ["bitwise_count", "packbits", "unpackbits"],
        "transforms.jit": ["jit"],
    }
    with pytest.raises(ValueError, match="wanted a list __all__"):
        script.list_exports("xarr.base.names")


def test_every_function_that_a_module_of_the_numpy_level_exports_is_a_name_of_xarr():
    folder = Path(xarr.__file__).parent / "numpy_api"
    modules = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")]
    loaded = [importlib.import_module(".".join(("xarr.numpy_api", *path.parts))) for path in modules]
    exported = {name: getattr(one, name) for one in loaded for name in getattr(one, "__all__", ())}
    assert len(exported) > 300
    assert [name for name, function in exported.items() if getattr(xarr, name, None) is not function] == []


@pytest.mark.parametrize("name", sorted(xarr._PUBLIC_MODULES))
def test_a_public_module_is_an_attribute(name):
    code = f"import xarr; assert xarr.{name}.__name__ == 'xarr.{name}'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_completion_shows_no_module_but_the_public_ones():
    modules = {name for name in dir(xarr) if isinstance(getattr(xarr, name), ModuleType)}
    assert modules == xarr._PUBLIC_MODULES
    assert not [name for name in dir(xarr) if name.startswith("_") and not name.startswith("__")]


@pytest.mark.parametrize(
    "name", ["debug", "emath", "fft", "lax", "lib", "linalg", "random", "stablehlo", "tree", "tree_util"]
)
def test_completion_shows_no_import_of_a_module(name):
    shown = [each for each in dir(getattr(xarr, name)) if not each.startswith("_")]
    foreign = {
        "Any",
        "Callable",
        "Final",
        "Sequence",
        "TYPE_CHECKING",
        "annotations",
        "np",
        "missing",
        "wrap",
    }
    assert len(shown) > 1
    assert not foreign.intersection(shown)
    assert all(hasattr(getattr(xarr, name), each) for each in shown)


@pytest.mark.usefixtures("on_numpy")
def test_completion_of_an_array_shows_what_works():
    x = xarr.ones((2, 3))
    shown = dir(x)
    assert {"mean", "T", "at", "__add__"} <= set(shown)
    for name in shown:
        getattr(x, name)
    assert not [name for name in shown if name.startswith("_") and not name.startswith("__")]


@pytest.mark.parametrize("name", ["numpy", "cpu", "detach", "unsqueeze"])
def test_a_method_of_pytorch_says_what_to_write(name):
    x = xarr.ones(2)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match="it is PyTorch's; "):
        getattr(x, name)


def test_importing_xarr_loads_no_late_module():
    code = "import sys, xarr; print(*(m for m in xarr._LATE_MODULES if f'xarr.{m}' in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def _run(code: str) -> subprocess.CompletedProcess[str]:
    on_numpy = {**os.environ, "XARR_BACKEND": "numpy"}
    return subprocess.run(
        [sys.executable, "-c", code], env=on_numpy, capture_output=True, text=True, timeout=120
    )


def test_importing_xarr_loads_neither_numpy_nor_arrays() -> None:
    absent = "print(*({'numpy', 'ml_dtypes', 'xarr.arrays.array', 'xarr.lax'} & set(sys.modules)))"
    assert _run(f"import sys, xarr; {absent}").stdout.split() == []
    assert _run(f"import sys, xarr; xarr.asarray; {absent}").stdout.split() != []


@pytest.mark.parametrize(
    "module", sorted({*xarr._PUBLIC_MODULES, "backend", "runtime.handles", "calls.operands"})
)
def test_a_program_may_begin_with_any_module(module: str) -> None:
    code = f"import xarr.{module}; import xarr.lax as lax; print(type(lax.add(lax.full((2,), 1.0), 1.0)), xarr.ndarray)"
    assert _run(code).stdout == "<class 'xarr.Array'> <class 'xarr.Array'>\n"


def test_a_program_may_begin_with_lax() -> None:
    code = "from xarr.lax import full; x = full((2,), 1.0); print(x.sum(), type(x).__name__)"
    assert _run(code).stdout == "2.0 Array\n"


def test_a_module_that_is_no_public_name_is_an_attribute_all_the_same() -> None:
    assert _run("import xarr; print(xarr.dtypes.bfloat16.__name__)").stdout == "bfloat16\n"


def test_threads_may_ask_for_names_first_at_the_same_time() -> None:
    code = (
        "import threading, xarr\n"
        "names = ['zeros', 'lax', 'linalg', 'jit', 'explain', 'random', 'Array', 'float32', 'fft', 'where']\n"
        "barrier, failed = threading.Barrier(len(names)), []\n"
        "def ask(name):\n"
        "    barrier.wait()\n"
        "    try: getattr(xarr, name)\n"
        "    except BaseException as error: failed.append((name, error))\n"
        "threads = [threading.Thread(target=ask, args=(name,)) for name in names]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()\n"
        "print(failed, xarr.zeros(1) + 1)\n"
    )
    assert _run(code).stdout == "[] [1.]\n"


@pytest.mark.parametrize("name", ["AxisError", "LinAlgError", "MatrixShapeError"])
def test_errors_of_numpy_are_names_of_errors(name: str) -> None:
    error = getattr(xarr.errors, name)
    assert error.__module__ == "xarr.errors" and name in dir(xarr.errors)
    assert pickle.loads(pickle.dumps(error("text"))).args == ("text",)
    assert issubclass(error, ValueError) and issubclass(error, xarr.errors.XarrError)
    with pytest.raises(AttributeError, match="has no attribute 'NoError'"):
        xarr.errors.NoError  # noqa: B018


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'xarr' has no attribute 'hannning'"):
        xarr.hannning  # noqa: B018


def test_python_suggests_nothing_where_a_reason_says_what_to_write():
    run = subprocess.run([sys.executable, "-c", "import xarr; xarr.trapz"], capture_output=True, text=True)
    assert run.stderr.endswith("which NumPy has removed: `xarr.trapezoid`\n")


@pytest.mark.parametrize(("code", "meant"), [("xarr.zeroes", "zeros"), ("xarr.linalg.solv", "solve")])
def test_python_suggests_the_name_that_was_meant(code, meant):
    run = subprocess.run([sys.executable, "-c", f"import xarr; {code}"], capture_output=True, text=True)
    assert run.returncode == 1
    assert f"Did you mean: '{meant}'?" in run.stderr


def test_a_star_imports_every_public_name() -> None:
    scope: dict[str, object] = {}
    exec("from xarr import *", scope)
    del scope["__builtins__"]
    assert sorted(scope) == [name for name in sorted(dir(xarr)) if not name.startswith("_")]
    assert scope["nansum"] is xarr.nansum
