"""What holds for every test: a known environment, one source tree, and a configuration put back."""

import gc
import importlib
import importlib.util
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from importlib import metadata
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest._io.saferepr import saferepr  # of objects of tests that have no text, too
from hypothesis import settings

from tests.support import answers, marks
from tests.support.checkout import CHECKOUT, stale_backends, unexpected_variables

# The default draws the same examples on every machine: a red run can be repeated by anyone.
# `--hypothesis-profile=dev` searches anew each time.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, max_examples=500)
# The same, by another name, with which `tests/support/fuzz.py` draws more.
settings.register_profile("thorough", settings.get_profile("ci"))
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run the tests with the marker `thorough` too")
    parser.addoption(
        "--cuda",
        choices=("emulated", "wheel", "gpu"),
        default="emulated",
        help="what the backend `cupy` runs on: the emulator; CuPy on memory of the host too, which must be installed; "
        "or a GPU, which must be there, for the tests with the marker `gpu`",
    )
    parser.addoption(
        "--cases",
        type=int,
        help="of each test so many cases, and more only where these do not have each value of its lists: for other "
        "settings, which are about the lines that run",
    )
    parser.addoption(
        "--seconds",
        type=float,
        help="skip the tests that would begin later than so many seconds after the start",
    )


@pytest.hookimpl(tryfirst=True)  # before xdist, which would choose `load`
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let each process under `-n` have its own files, so that what is slow at first, or shared, is done once."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(trylast=True)  # after what `-m` leaves out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    with_address = [item.nodeid for item in items if re.search(r"\b0x[0-9a-f]{8,}", item.nodeid)]
    if with_address:
        raise pytest.UsageError(
            f"the name of a test holds an address, another in each process: {with_address[0]}"
        )
    for item in items:
        if item.get_closest_marker("gpu") and config.getoption("--cuda") != "gpu":
            item.add_marker(pytest.mark.skip(reason="needs a GPU, and --cuda=gpu: nox -s gpu"))
    if not config.getoption("--thorough"):
        _keep(config, items, [item for item in items if not item.get_closest_marker("thorough")])
    if config.getoption("--cases"):
        _keep_few(config, items, items, _values_of, config.getoption("--cases"))
    elif not config.getoption("--thorough"):
        sampled = [item for item in items if item.get_closest_marker("sampled")]
        _keep_few(config, items, sampled, _entries_of, 8, times=2)


def _keep_few(
    config: pytest.Config,
    items: list[pytest.Item],
    cases: list[pytest.Item],
    values_of: Callable[[pytest.Item], Iterable[Hashable]],
    least: int,
    times: int = 1,
) -> None:
    """Keep of `cases` those that `choose_cases` chooses of each test."""
    tests: dict[str, dict[str, Iterable[Hashable]]] = {}
    for item in cases:
        tests.setdefault(item.nodeid.partition("[")[0], {})[item.nodeid] = values_of(item)
    chosen = {name for each in tests.values() for name in marks.choose_cases(each, least, times)}
    left_out = {name for each in tests.values() for name in each} - chosen
    _keep(config, items, [item for item in items if item.nodeid not in left_out])


def _values_of(item: pytest.Item) -> list[tuple[str, str]]:
    """Each argument of a case."""
    call = getattr(item, "callspec", None)
    return [(name, saferepr(value, None)) for name, value in call.params.items()] if call else []


def _entries_of(item: pytest.Item) -> list[Hashable]:
    """The entry that a case takes of each list that multiplies; with each value of a fixture they count anew."""
    call = getattr(item, "callspec", None)
    if call is None:
        return []
    if call.marks:
        return [item.nodeid]  # A case that may be skipped stands for no other.
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [
        [name.strip() for name in each.split(",")] if isinstance(each, str) else [*each] for each in lists
    ]
    of_lists = {name for each in names for name in each}
    of_fixtures = tuple((name, id(value)) for name, value in call.params.items() if name not in of_lists)
    return [(*each, *(id(call.params[name]) for name in each), of_fixtures) for each in names]


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    ids = {*map(id, kept)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in ids])
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no tests of arguments that are `thorough` where they would be left out: 23,000 of 61,000."""
    if metafunc.config.getoption("--thorough"):
        return
    marks = metafunc.definition.own_markers
    for index, mark in enumerate(marks):
        if mark.name == "parametrize":
            names, values = mark.args
            is_wanted = [not _is_thorough(each) for each in values]
            if any(is_wanted) and not all(is_wanted):
                ids = mark.kwargs.get("ids")
                own = {"ids": [*compress(ids, is_wanted)]} if isinstance(ids, list | tuple) else {}
                marks[index] = pytest.mark.parametrize(
                    names, [*compress(values, is_wanted)], **{**mark.kwargs, **own}
                ).mark


def _is_thorough(value: object) -> bool:
    return any(mark.name == "thorough" for mark in getattr(value, "marks", ()))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what the import of all tests made: a full collection takes a second else."""
    _freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(trylast=True)  # after the fixtures of the module
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let it pass over what stays of each file, too: programs that are kept for other calls, above all."""
    if nextitem is not None and nextitem.path != item.path:
        _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()


#: When no other test begins, in seconds since the epoch: processes of xdist have it from the one that started them.
_END = "TESTS_END"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what would begin after the end that `--seconds` sets."""
    if item.config.getoption("--seconds") is not None and time.time() > float(os.environ[_END]):
        pytest.skip(f"no time left of --seconds={item.config.getoption('--seconds'):g}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("--seconds") is not None:
        os.environ[_END] = str(time.time() + config.getoption("--seconds"))
    problems = unexpected_variables(os.environ) + stale_backends(CHECKOUT, _directory_of)
    if problems:
        raise pytest.UsageError("\n".join(problems))
    # Nothing is compiled the less because a run before this one compiled it.  Before xarr is imported, which reads it.
    os.environ["XARR_KERNEL_CACHE"] = "off"
    # Where JAX refuses, it would look at each frame for those that are its own: a twentieth of the time of `tests/lax`.
    os.environ["JAX_TRACEBACK_FILTERING"] = "off"
    if os.environ.get("XARR_BACKEND") in _BACKENDS:
        _register(os.environ["XARR_BACKEND"])
    _prepare_cuda(config.getoption("--cuda"))
    if config.getoption("--thorough") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("thorough")
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="xarr-answers-")
        os.environ[answers.SHARED] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_report_header(config: pytest.Config) -> str:
    return f"xarr from {_directory_of('xarr')}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    answers.write()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["missed"] = answers.missed
        session.config.workeroutput["used"] = sorted(answers.used)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker of xdist missed and used."""
    output = getattr(node, "workeroutput", {})
    for file, count in output.get("missed", {}).items():
        answers.missed[file] = answers.missed.get(file, 0) + count
    answers.used.update(output.get("used", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if text := answers.report(answers.missed, answers.used, metadata.version("jax")):
        terminalreporter.write_line(text)


def _directory_of(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve().parent


#: Backends of the tests, and the modules that have them.
_BACKENDS = {"opaque": "tests.support.opaque_backend", "toy_c": "tests.support.c_engine"}


def _register(name: str) -> Any:
    """Let a backend of the tests be found by its name, as a module `xarr_<name>` on the path would be."""
    sys.modules[f"xarr_{name}"] = importlib.import_module(_BACKENDS[name])
    return importlib.import_module("xarr.backend").get(name)


def _prepare_cuda(device: str) -> None:
    """Refuse to run without what `--cuda` asks for, which would skip its tests, and connect the backend `cupy`."""
    if device == "wheel" and not importlib.import_module("tests.cuda.host_wheel.wheel").is_installed():
        raise pytest.UsageError(
            "--cuda=wheel needs CuPy and NVRTC: pip install cupy-cuda13x nvidia-cuda-nvrtc"
        )
    if device == "gpu":
        try:
            importlib.import_module("xarr.backend").get("cupy")
        except importlib.import_module("xarr.errors").BackendError as error:
            raise pytest.UsageError(f"--cuda=gpu: {error}") from error
    elif os.environ.get("XARR_BACKEND") == "cupy":
        _emulate_cuda()


def _emulate_cuda() -> Any:
    """Let the backend `cupy` compute on a device that is emulated on the host."""
    emulated = importlib.import_module("tests.cuda.emulator.driver")
    importlib.import_module("xarr_cupy.driver").connect = emulated.EmulatedDriver
    return importlib.import_module("xarr.backend").get("cupy")


@pytest.fixture
def cupy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The backend of new arrays is `cupy`, on an emulated device; elsewhere there is no such backend, or a real one.

    With --cuda=gpu it is that of the GPU, for tests that ask for nothing that only the emulator has.
    """
    if request.config.getoption("--cuda") == "gpu":
        backends = importlib.import_module("xarr.backend")
        with backends.use_backend("cupy"):
            yield backends.get("cupy")
        return
    driver, backends = map(importlib.import_module, ("xarr_cupy.driver", "xarr.backend"))
    monkeypatch.setattr(driver, "connect", driver.connect)
    monkeypatch.setattr(
        backends, "_loaded", {k: v for k, v in backends._loaded.items() if not k.startswith("cupy")}
    )
    backend = _emulate_cuda()
    with importlib.import_module("xarr.base.configuration").current(backend="cupy"):
        yield backend


@pytest.fixture
def opaque() -> Iterator[Any]:
    """The backend of new arrays is one whose buffers nobody else can read, and which counts transfers."""
    backend = _register("opaque")
    with importlib.import_module("xarr.base.configuration").current(backend="opaque"):
        yield backend


@pytest.fixture
def toy_c() -> Iterator[Any]:
    """The backend of new arrays is the toy engine, which prints C."""
    backend = _register("toy_c")
    with importlib.import_module("xarr.base.configuration").current(backend="toy_c"):
        yield backend


@pytest.fixture
def on_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests of the name, the text or the memory of the NumPy backend, whichever backend the run is about.

    Processes that they start know no backend of the tests.
    """
    monkeypatch.delenv("XARR_BACKEND", raising=False)
    with importlib.import_module("xarr.base.configuration").current(backend="numpy"):
        yield


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests of what is fused by default, or printed of it, whichever engine the run is about.

    The engine of processes that they start is the default one too.
    """
    monkeypatch.delenv("XARR_FUSION", raising=False)
    with importlib.import_module("xarr.base.configuration").current(fusion="auto"):
        yield


@pytest.fixture
def python_methods(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests of the methods of Array in Python, which others may have replaced by now."""
    native = importlib.import_module("xarr.arrays.native_methods")
    monkeypatch.setattr(importlib.import_module("xarr.ir.source"), "_calls_left", 0)
    were_replaced = native.uninstall()
    yield
    if were_replaced:
        native.install()


@pytest.fixture
def machine_code_methods(python_methods: None) -> Iterator[None]:
    """For tests of the methods of Array in machine code, which stand in place of those in Python."""
    native = importlib.import_module("xarr.arrays.native_methods")
    if not native.install():
        pytest.skip("no machine code for methods here")
    yield
    native.uninstall()


@pytest.fixture
def unfused() -> Iterator[None]:
    """For tests of single operations or of their text: no fused loops, whichever engine the run is about."""
    with importlib.import_module("xarr.base.configuration").current(fusion="off"):
        yield


@pytest.fixture
def recorded() -> Iterator[None]:
    """For tests of what is recorded and evaluated later: ops on small arrays are not computed at once."""
    config = importlib.import_module("xarr.base.configuration").current
    before = config.snapshot()
    config.small_arrays = "lazy"
    yield
    config.restore(before)


#: Of each module's generators, by its name and theirs, as the module's import left them.
_fresh: dict[str, dict[str, Any]] = {}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also in a process that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def same_random_numbers(request: pytest.FixtureRequest) -> None:
    """A module's generator starts anew for each test: what a test draws does not depend on those before it."""
    module = vars(request.module)
    generators = {name: value for name, value in module.items() if isinstance(value, np.random.Generator)}
    states = _fresh.setdefault(
        request.module.__name__, {name: value.bit_generator.state for name, value in generators.items()}
    )
    for name, state in states.items():
        generators[name].bit_generator.state = state


@pytest.fixture(autouse=True)
def xarr_config_reset() -> Iterator[None]:
    """Puts the configuration and the import path back after each test, so that no test leans on another's."""
    # Not at the top: an error in xarr should show as failing tests, not as a conftest that fails.
    config = importlib.import_module("xarr.base.configuration").current
    before = config.snapshot()
    path = sys.path[:]
    config.verify_graphs = True
    # Lines of tests that read single elements are counted from 0 in each test.
    importlib.import_module("xarr.indexing.element_loops").forget()
    # Values of an earlier test that wait for the collector, and whose checks nobody read, keep ops from being computed
    # at once.
    importlib.import_module("xarr.runtime.check_flags").unread.clear()
    # Loop programs that were made while an earlier test had other numbers for the processor.
    templates = sys.modules.get("xarr.compiler.kernel_templates")
    if templates is not None and templates._kind.cache_info().currsize:
        schedule = importlib.import_module("xarr.compiler.schedule")
        for cache in (templates._kind, templates._count, schedule._build, schedule._build_verified):
            cache.cache_clear()
    # What an earlier test put out, and nobody fetched.
    world = importlib.import_module("xarr.communication.communicator").current_communicator()
    for queue in ("_incoming", "_outgoing"):
        getattr(world, queue, []).clear()
    yield
    config.restore(before)
    sys.path[:] = path
