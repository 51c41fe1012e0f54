"""The scripts of `.ci`: which settings and versions they choose, and what they let pass."""

import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from tests import conftest
from tests.support.checkout import CHECKOUT
from tests.support.marks import choose_cases
from tests.support.scripts import ci_script

machines, lowest, release = map(ci_script, ("machines", "lowest", "check_release"))

# --- machines.py --------------------------------------------------------------------------------------


def test_features_off_by_the_names_of_each_numpy():
    new, old = ["X86_V3", "X86_V4", "AVX512_ICL"], ["SSE42", "AVX2", "AVX512F", "AVX512_SKX"]
    assert machines.features_off(new) == ["", "X86_V4 AVX512_ICL", "X86_V3 X86_V4 AVX512_ICL"]
    assert machines.features_off(old) == ["", "AVX512F AVX512_SKX", "SSE42 AVX2 AVX512F AVX512_SKX"]
    assert machines.features_off(["ASIMDHP"]) == ["", "ASIMDHP"]
    assert machines.features_off([]) == [""]


def test_settings_are_every_pair_that_the_processor_can_run():
    dispatched = ["X86_V3", "X86_V4"]
    assert len(machines.settings(dispatched, {"AVX2": True, "AVX512F": True})) == 12
    without_wide = machines.settings(dispatched, {"AVX2": True, "AVX512F": False})
    assert {setting.get(machines.CORE) for setting in without_wide} == {None, "Haswell", "Zen"}
    assert machines.settings(["ASIMDHP"], {}) == [{}, {machines.FEATURES: "ASIMDHP"}]


def test_a_setting_replaces_what_is_set(monkeypatch):
    monkeypatch.setenv(machines.FEATURES, "X86_V4")
    monkeypatch.setenv(machines.CORE, "Zen")
    assert machines.FEATURES not in machines.in_setting({})
    assert machines.in_setting({machines.CORE: "Haswell"})[machines.CORE] == "Haswell"


def test_settings_take_effect():
    kernels = machines.probe({})
    assert kernels
    (*_, off) = machines.features_off(kernels.split()[:-1])
    assert machines.probe({machines.FEATURES: off}) == kernels.split()[-1]


def test_a_red_setting_shows(tmp_path, monkeypatch, capsys):
    for text, passed in (("def test_x(): assert 1 == 2", False), ("def test_x(): pass", True)):
        file = tmp_path / f"test_{passed}.py"
        file.write_text(text)
        monkeypatch.setattr(machines, "settings", lambda *_: [{}, {"ANY": "1"}])
        assert machines.main(["-p", "no:cacheprovider", "-p", "no:randomly", str(file)]) == (not passed)
        report = capsys.readouterr().out
        assert report.count("=== nothing set") == 1 and "=== ANY" not in report, "the same kernels run once"
        assert ("RED" in report, "ok " in report, "as above: 1" in report) == (not passed, passed, True)


def test_files_of_the_list_exist():
    assert len(set(machines.FILES)) == len(machines.FILES)
    assert [name for name in machines.FILES if not (CHECKOUT / name).is_file()] == []


# --- explicit.txt, opaque.txt -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["explicit.txt", "opaque.txt"])
def test_lists_of_tests_name_what_is_there(name):
    lines = (CHECKOUT / ".ci" / name).read_text(encoding="utf-8").splitlines()
    rows = [line.partition(" ") for line in lines if not line.startswith("#")]
    assert [path for path, _, _ in rows if not (CHECKOUT / path).exists()] == []
    assert len({path for path, _, _ in rows}) == len(rows)
    if name == "explicit.txt":
        assert all(reason.startswith(" # ") for _, _, reason in rows), "each says why"


# --- --cases ------------------------------------------------------------------------------------------


def test_a_few_cases_have_each_value_and_are_the_same_in_each_run():
    product = {f"test_x[{i}-{j}]": [("letter", i), ("dtype", j)] for i in range(8) for j in range(5)}
    for least in (1, 9, 12):
        for times in (1, 2, 3):
            chosen = choose_cases(product, least, times)
            assert chosen == choose_cases(dict(reversed(product.items())), least, times)
            counts = Counter(value for name in chosen for value in product[name])
            assert len(counts) == 13 and min(counts.values()) >= times
            assert max(least, 8 * times) <= len(chosen) <= max(least, 8 * times + 2)
    assert choose_cases(product, 100) == choose_cases(product, 1, 5) == {*product}
    single = {f"test_y[{i}]": [("name", i)] for i in range(50)}
    assert choose_cases(single, 1, 3) == {*single}
    assert choose_cases({"test_z": []}, 1) == {"test_z"}


# --- the marker `sampled` -----------------------------------------------------------------------------


def case_of(x, y, z, device, *marks):
    """A case of a test with the lists x and (y, z), and a fixture of devices."""
    lists = [SimpleNamespace(args=("x", [])), SimpleNamespace(args=("y, z", []))]
    call = SimpleNamespace(params={"x": x, "y": y, "z": z, "device": device}, marks=marks)
    name = f"a.py::test_product[{x}-{y}-{z}-{device}]"
    return SimpleNamespace(nodeid=name, callspec=call, iter_markers=lambda name: iter(lists))


def test_of_lists_that_multiply_each_entry_is_there_twice_with_each_device():
    rows, devices = [("a", 1), ("b", 1), ("a", 2), ("b", 2)], ["host", "gpu"]
    cases = [case_of(x, *row, device) for x in range(8) for row in rows for device in devices]
    skipped = [case_of(x, "c", 1, "host", pytest.mark.skip) for x in range(8)]
    others = [SimpleNamespace(nodeid=f"a.py::test_all[{x}]") for x in range(100)]
    items, deselected = [*cases, *skipped, *others], []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    conftest._keep_few(
        SimpleNamespace(hook=hook), items, [*cases, *skipped], conftest._entries_of, 8, times=2
    )
    assert len(items) + len(deselected) == len([*cases, *skipped, *others])
    assert all(each in items for each in (*skipped, *others))
    kept = [each.callspec.params for each in items if each in cases]
    assert 32 <= len(kept) <= 36
    counts = Counter((each["device"], each["x"]) for each in kept)
    counts.update((each["device"], each["y"], each["z"]) for each in kept)
    assert len(counts) == 2 * (8 + 4) and min(counts.values()) >= 2


# --- lowest.py ----------------------------------------------------------------------------------------


def test_lowest_versions():
    assert lowest.lowest(["numpy>=2.1.2", "ruff==0.1", "ml_dtypes >= 0.5.1, <1", "numpy>=2.1.2"]) == [
        "ml_dtypes==0.5.1",
        "numpy==2.1.2",
    ]


def test_lowest_versions_of_the_checkout():
    script = CHECKOUT / ".ci" / "lowest.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    names = [pin.partition("==")[0] for pin in done.stdout.split()]
    assert {"numpy", "ml_dtypes", "typing-extensions", "llvmlite", "jax", "pytest"} <= set(names)
    assert len(names) == len(set(names)), "each has one lowest version"


# --- settings of pytest ---------------------------------------------------------------------------------


def test_a_test_that_waits_for_ever_is_named_and_ends(tmp_path):
    waits = tmp_path / "test_waiting.py"
    waits.write_text("import threading\ndef test_waits():\n    threading.Event().wait()\n", encoding="utf-8")
    settings = (
        "-c",
        str(CHECKOUT / "pyproject.toml"),
        f"--rootdir={tmp_path}",
        "-o",
        "faulthandler_timeout=0.5",
    )
    command = [sys.executable, "-m", "pytest", "-n", "2", *settings, str(waits)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "crashed while running" in done.stdout and "test_waiting.py" in done.stdout
    assert "in test_waits" in done.stderr


# --- check_release.py ---------------------------------------------------------------------------------

TEXTS = {
    "xarr/__init__.py": 'x = 1\n__version__ = "1.2.3"\n',
    "CITATION.cff": "cff-version: 1.2.0\ntitle: xarr\nversion: 1.2.3\n",
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2027-01-31\n\n## [1.2.2] - 2027-01-01\n",
}


def test_a_release_whose_files_agree_passes():
    assert release.problems_of("v1.2.3", TEXTS) == []


@pytest.mark.parametrize(
    ("tag", "name", "problem"),
    [
        ("v1.2.4", "", "the tag is v1.2.4, the version of xarr/__init__.py is 1.2.3"),
        ("1.2.3", "", "the tag is 1.2.3"),
        ("v1.2.3", "CITATION.cff", "CITATION.cff has the version 1.0"),
        ("v1.2.3", "CHANGELOG.md", "CHANGELOG.md has the version None"),
    ],
)
def test_a_release_whose_files_differ_is_refused(tag, name, problem):
    changed = {"CITATION.cff": "version: 1.0\n", "CHANGELOG.md": "## [Unreleased]\n"}
    texts = TEXTS | {key: text for key, text in changed.items() if key == name}
    (results,) = release.problems_of(tag, texts)
    assert problem in results


# --- what conftest.py makes of the arguments of tests ---------------------------------------------------


@pytest.mark.parametrize("is_thorough", [False, True])
def test_no_tests_of_thorough_arguments_are_made_but_in_thorough_runs(is_thorough, request):
    file = str(CHECKOUT / "tests" / "conftest.py")
    (plugin,) = (
        each for each in request.config.pluginmanager.get_plugins() if getattr(each, "__file__", "") == file
    )
    some = [1, pytest.param(2, marks=pytest.mark.thorough), 3]
    alone = [pytest.param(1, marks=pytest.mark.thorough)]
    marks = [
        pytest.mark.parametrize("x", some, ids=["a", "b", "c"]).mark,
        pytest.mark.parametrize("y", alone).mark,
    ]
    plugin.pytest_generate_tests(
        SimpleNamespace(
            config=SimpleNamespace(getoption=lambda name: is_thorough and name == "--thorough"),
            definition=SimpleNamespace(own_markers=marks),
        )
    )
    assert marks[0].args[1] == (some if is_thorough else [1, 3])
    assert marks[0].kwargs["ids"] == (["a", "b", "c"] if is_thorough else ["a", "c"])
    assert marks[1].args[1] == alone, "a test without arguments would run as one that is skipped"
