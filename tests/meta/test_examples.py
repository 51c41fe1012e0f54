"""The examples run from end to end, on a few data."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support.scripts import run_example


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run digits.py as a user would, with the library under test."""
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package)
    return run_example("digits", *arguments, directory=directory)


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("backend", "known", "new", "least"), [("numpy", 300, 100, 0.9), ("reference", 40, 5, 0.5)]
)
def test_digits(backend: str, known: int, new: int, least: float, tmp_path: Path) -> None:
    done = run("--backend", backend, "--train", str(known), "--test", str(new), directory=tmp_path)
    assert done.returncode == 0, done.stderr
    match = re.search(r"accuracy ([\d.]+)%: (\d+) of (\d+) digits, (\d+) known ones", done.stdout)
    assert match is not None
    right = int(match[2])
    assert (int(match[3]), int(match[4])) == (new, known)
    assert f"{right / new:.1%}" == f"{match[1]}%"
    assert least <= right / new <= 1
    assert f"queries: f32[{min(new, 32)},1,64]" in done.stdout
    assert f"pictures: f32[1,{known},64]" in done.stdout
    assert "result[i,j,k] = queries[i,0,k] - pictures[0,j,k]" in done.stdout
    assert f"classifying on {backend}: 100%" in done.stderr
    assert_is_picture(tmp_path / "digits.png")
    broadcast = ElementTree.parse(tmp_path / "digits_broadcast.svg").getroot()
    told = " ".join(broadcast.itertext())
    assert "queries" in told and f"f32[{min(new, 32)},{known},64]" in told
    assert f"wrote digits.png and {Path('digits_broadcast.svg')}" in done.stdout


def assert_is_picture(path: Path) -> None:
    """The file is a PNG of the size that the example asks for, and neither blank nor noise."""
    image = pytest.importorskip("matplotlib.image")
    pixels = image.imread(path)
    assert pixels.shape[:2] == (468, 960)
    assert 0.005 < float((pixels[..., :3] < 0.5).mean()) < 0.5


def test_a_blank_picture_is_noticed(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    numpy = pytest.importorskip("numpy")
    image.imsave(tmp_path / "blank.png", numpy.ones((468, 960, 3)))
    with pytest.raises(AssertionError):
        assert_is_picture(tmp_path / "blank.png")


def test_data_parallel(tmp_path: Path) -> None:
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package)
    done = run_example("data_parallel", "--steps", "40", "--count", "400", directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    match = re.search(r"accuracy ([\d.]+)%: \d+ of 400 digits, loss 2.303 -> ([\d.]+)", done.stdout)
    assert match is not None
    assert float(match[1]) > 80
    assert float(match[2]) < 1.5
    assert "weights of 4 replicas and of one: the same bits" in done.stdout
    assert "training on 4 replicas: 100%" in done.stderr
    assert (tmp_path / "data_parallel.png").stat().st_size > 1000


@pytest.mark.implicit
def test_larger_than_memory(tmp_path: Path) -> None:
    pytest.importorskip("dask.array")
    done = run_example("larger_than_memory", "--memory", "48", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "48 MB allowed, 192 MB of points in 48 chunks" in done.stdout
    assert "as one array: MemoryError" in done.stdout or "does not limit memory" in done.stdout
    means = re.findall(r"mean distance ([\d,.]+) km, standard deviation ([\d,.]+) km", done.stdout)
    assert len(means) == 2 and means[0] == means[1]
    assert abs(float(means[0][0].replace(",", "")) - 10_007.5) < 10
    assert done.stdout.count("100% Completed") == 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--train", "2"), "wanted 1 <= k <= train"),
        (("--train", "1700", "--test", "100"), "train + test <= 1797"),
        (("--backend", "warp"), "no backend called 'warp'"),
        (("--backend", "null"), "backend 'null' compiles and never runs"),
        (("--train", "9", "--test", "2", "--output", "missing/a.png"), "cannot write missing/a.png"),
    ],
    ids=["train", "both", "backend", "null", "output"],
)
def test_digits_with_bad_arguments(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run(*arguments, directory=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
