"""The pictures of explanations as a browser draws them; skipped where there is no Chromium."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xarr.explanation.chain import explain_text

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
EXPRESSIONS = ("(5,1) - (5,)", "(3,4) + (3,)", "where((3,), (2,1), ())")
WIDTH, HEIGHT = 1400, 1600

#: What is drawn behind the explanation, and nowhere in it.
BEHIND = (255, 0, 255)

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@pytest.fixture(scope="module")
def browser() -> str:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    return path


def drawn(body: str, browser: str, directory: Path) -> Pixels:
    """The window of a browser that shows `body` on a background of its own, as height x width x 3."""
    image = pytest.importorskip("matplotlib.image")
    page, picture = directory / "page.html", directory / "page.png"
    color = "rgb({}, {}, {})".format(*BEHIND)
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0;background:{color}">{body}</body>',
        encoding="utf-8",
    )
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--force-device-scale-factor=1", f"--window-size={WIDTH},{HEIGHT}"),
        *(f"--user-data-dir={directory / 'profile'}", f"--screenshot={picture}", page.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pixels: Pixels = np.round(image.imread(picture)[..., :3] * 255).astype(np.uint8)
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    return pixels


def extent(pixels: Pixels) -> tuple[int, int]:
    """Width and height of what lies before the background, which must begin in the upper left corner."""
    covered = (pixels != BEHIND).any(axis=2)
    rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
    if not rows.size:
        return 0, 0
    assert (rows[0], columns[0]) == (0, 0)
    return int(columns[-1]) + 1, int(rows[-1]) + 1


def colors_in(pixels: Pixels) -> set[tuple[int, ...]]:
    """The colours of at least 100 pixels."""
    colors, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    return {tuple(map(int, color)) for color in colors[counts >= 100]}


def ink(pixels: Pixels) -> float:
    """Which part of what lies before the background is not white."""
    covered = (pixels != BEHIND).any(axis=2)
    return float((covered & (pixels != 255).any(axis=2)).sum() / covered.sum())


def fills_of(svg: str) -> set[tuple[int, ...]]:
    """The colours, other than white, that the style of an SVG fills areas with."""
    fills = re.findall(r"fill:#([0-9a-f]{6})", svg)
    return {tuple(bytes.fromhex(color)) for color in fills} - {(255, 255, 255)}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_svg(expression: str, browser: str, tmp_path: Path) -> None:
    svg = explain_text(expression).svg()
    size = [float(number) for number in re.findall(r'(?:width|height)="([\d.]+)"', svg)[:2]]
    pixels = drawn(svg.replace("<svg ", '<svg style="display:block" ', 1), browser, tmp_path)
    # A last pixel that is covered in part mixes both colours, or shows nothing of the picture.
    for covered, wanted in zip(extent(pixels), size, strict=True):
        assert math.floor(wanted) <= covered <= math.ceil(wanted)
    assert 0.03 < ink(pixels) < 0.6
    assert len(fills_of(svg) & colors_in(pixels)) >= 2


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_html(expression: str, browser: str, tmp_path: Path) -> None:
    html = explain_text(expression).html()
    pixels = drawn(html, browser, tmp_path)
    width, height = extent(pixels)
    assert width == WIDTH
    assert 200 < height < HEIGHT
    assert ink(pixels) > 0.01
    assert len(fills_of(html) & colors_in(pixels)) >= 2


def test_what_is_missing_is_red(browser: str, tmp_path: Path) -> None:
    red = (0xFB, 0xD9, 0xD9)
    assert red in colors_in(drawn(explain_text("(3,4) + (3,)").svg(), browser, tmp_path))
    assert red in colors_in(drawn(explain_text("(3,4) @ (3,)").html(), browser, tmp_path))
    assert red not in colors_in(drawn(explain_text("(3,4) + (4,)").svg(), browser, tmp_path))


def test_an_empty_picture_is_noticed(browser: str, tmp_path: Path) -> None:
    empty = '<svg style="display:block" width="300" height="200" xmlns="http://www.w3.org/2000/svg">'
    assert extent(drawn(f"{empty}</svg>", browser, tmp_path)) == (0, 0)
    white = drawn(f'{empty}<rect width="300" height="150" fill="#fff"/></svg>', browser, tmp_path)
    assert extent(white) == (300, 150)
    assert ink(white) == 0
    assert colors_in(white) == {BEHIND, (255, 255, 255)}
