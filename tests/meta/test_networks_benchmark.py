"""The benchmark of networks: each is right in a tiny size, and its table is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.meta.test_benchmarks import run
from tests.support.scripts import benchmark_importer

NAMES = (
    *("ResNet-50", "ResNet-50, training step", "small ResNet, training step", "U-Net", "MLP-Mixer"),
    *("GPT", "GPT, training step", "LSTM", "LSTM, training step"),
)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the benchmark, and forgets those it imported."""
    yield from benchmark_importer(monkeypatch, "network_rows", "networks")


@pytest.fixture
def with_flax() -> None:
    """Skips where what the networks are made of is not installed."""
    for name in ("flax", "optax"):
        pytest.importorskip(name)


@pytest.mark.implicit
@pytest.mark.usefixtures("with_flax")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("MLP-Mixer", "LSTM") else pytest.param(name, marks=pytest.mark.thorough)
        for name in NAMES
    ],
)
def test_each_network_gives_what_jax_gives(modules: Any, name: str) -> None:
    measure, row, networks = modules("measure"), modules("network_rows.row"), modules("networks")
    (network,) = [network for network in networks.all_networks() if network.name == name]
    makers = networks.makers(row.flat_call(network.make(True)))
    wanted = makers.pop("jax")()()
    differences = [measure.difference(make()(), wanted, network.tolerance) for make in makers.values()]
    assert differences == ["", ""]


@pytest.mark.usefixtures("with_flax")
@pytest.mark.filterwarnings("ignore")
def test_the_networks_are_those_that_are_tested(modules: Any) -> None:
    assert tuple(network.name for network in modules("networks").all_networks()) == NAMES


@pytest.mark.usefixtures("with_flax")
def test_the_command_prints_its_table(tmp_path: Path) -> None:
    figures = tmp_path / "networks.json"
    arguments = ("--rows", "mixer", "--threads", "1", "--tiny", "--budget", "0.01", "--json", str(figures))
    done = run(*arguments, script="networks.py")
    assert done.returncode == 0, done.stderr
    assert "MLP-Mixer" in done.stdout
    assert "first call of xarr" in done.stderr
    (line,) = json.loads(figures.read_text(encoding="utf-8"))
    assert line["reasons"] == {}
    assert line["seconds"].keys() == line["first"].keys() == {"jax", "jax exported", "xarr"}


@pytest.mark.usefixtures("with_flax")
def test_options_that_mean_nothing() -> None:
    done = run("--rows", "nonsense", script="networks.py")
    assert done.returncode != 0
    assert "wanted parts of names" in done.stderr


def test_what_is_not_installed_is_named(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = modules("networks")
    monkeypatch.setattr(networks, "NEEDED", ("numpy", "no_such_package"))
    with pytest.raises(SystemExit, match=r"needs no_such_package: pip install -e '\.\[bench\]'"):
        networks.main(["--rows", "GPT"])


def test_the_summary_compares_the_faster_call_of_jax(modules: Any) -> None:
    networks = modules("networks")
    seconds, first = {"jax": 4.0, "jax exported": 3.0, "xarr": 6.0}, {"jax": 8.0, "xarr": 4.0}
    line = networks.Line("GPT", 2, seconds, first)
    assert line.ratio("seconds") == 0.5
    assert line.ratio("first") == 2.0
    other = networks.Line("LSTM", 2, reasons={"xarr": "refused"})
    text = "\n".join([*networks.table([line, other]), *networks.summary([line, other])])
    assert "2 threads: 0.50, of first calls 2.00" in text
    assert "LSTM, 2 threads: xarr: refused" in text
