"""The pictures of explanations as a browser draws them; skipped where there is no Chromium."""

from __future__ import annotations

import html
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xarr.explainers.written_calls import explain_any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
EXPRESSIONS = (
    "(5,1) - (5,)",
    "(3,4) + (3,)",
    "where((3,), (2,1), ())",
    "sum((3,4), axis=1)",
    "f32[3,4]{0,1}",
)
OTHERS = ("(2,3) @ (3,4)", "max_pool((6,6), 3, padding=1)")
NARROW = ("(5,1) - (5,)", "(3,4) + (3,)", "f32[2,3] @ f32[3,4]", "dtype(int8, uint8)", "(2,3,4,5) * (4,5)")
WIDTH, HEIGHT = 1400, 1000

EMPTY = '<svg width="300" height="200" xmlns="http://www.w3.org/2000/svg">'

#: What is drawn behind the explanation, and nowhere in it.
BEHIND = (255, 0, 255)

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


#: Bodies of pages, by name.
PAGES = {
    **{f"svg {each}": explain_any(each).svg() for each in (*EXPRESSIONS, "(3,4) + (4,)")},
    **{f"svg {each}": explain_any(each).svg() for each in OTHERS},
    **{f"html {each}": explain_any(each).html() for each in (*EXPRESSIONS, "(3,4) @ (3,)")},
    "empty": f"{EMPTY}</svg>",
    "white": f'{EMPTY}<rect width="300" height="150" fill="#fff"/></svg>',
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pixels]:
    """The pixels that windows of a browser show of each of `PAGES` on a background of its own, as height x width x 3.

    The windows are frames of one page, one below the other: the browser takes longer to start than to draw.
    """
    browser = find_browser()
    image = pytest.importorskip("matplotlib.image")
    directory = tmp_path_factory.mktemp("pictures")
    page, picture = directory / "page.html", directory / "page.png"
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">{"".join(map(frame, PAGES.values()))}</body>',
        encoding="utf-8",
    )
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--force-device-scale-factor=1", f"--window-size={WIDTH},{HEIGHT * len(PAGES)}"),
        *(f"--user-data-dir={directory / 'profile'}", f"--screenshot={picture}", page.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pixels: Pixels = np.round(image.imread(picture)[..., :3] * 255).astype(np.uint8)
    assert pixels.shape == (HEIGHT * len(PAGES), WIDTH, 3)
    return dict(zip(PAGES, np.split(pixels, len(PAGES)), strict=True))


def find_browser() -> str:
    """The path of a browser; the test is skipped where there is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    return browser


def markup_after_scripts(body: str, directory: Path) -> str:
    """The page as it is after its scripts have run."""
    page = directory / "page.html"
    page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body>{body}</body>', encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory / 'profile'}"]
    command = [find_browser(), *options, "--dump-dom", page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, timeout=120, text=True).stdout


def frame(body: str) -> str:
    """A document of its own within a page: styles of one do not reach the others."""
    style = f"margin:0;overflow:hidden;background:rgb({', '.join(map(str, BEHIND))})"
    body = body.replace("<svg ", '<svg style="display:block" ', 1) if body.startswith("<svg ") else body
    document = f'<!DOCTYPE html><meta charset="utf-8"><body style="{style}">{body}</body>'
    size = f'width="{WIDTH}" height="{HEIGHT}" style="display:block;border:0"'
    return f'<iframe {size} srcdoc="{html.escape(document)}"></iframe>'


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
    # As numbers: rows take ten times as long to sort.
    numbers, counts = np.unique(pixels @ np.array([1 << 16, 1 << 8, 1]), return_counts=True)
    return {tuple(int(number).to_bytes(3, "big")) for number in numbers[counts >= 100]}


def ink(pixels: Pixels) -> float:
    """Which part of what lies before the background is not white."""
    covered = (pixels != BEHIND).any(axis=2)
    return float((covered & (pixels != 255).any(axis=2)).sum() / covered.sum())


def fills_of(svg: str) -> set[tuple[int, ...]]:
    """The colours, other than white, that the style of an SVG fills areas with."""
    fills = re.findall(r"fill:#([0-9a-f]{6})", svg)
    return {tuple(bytes.fromhex(color)) for color in fills} - {(255, 255, 255)}


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *OTHERS])
def test_svg(expression: str, drawn: dict[str, Pixels]) -> None:
    svg, pixels = PAGES[f"svg {expression}"], drawn[f"svg {expression}"]
    size = [float(number) for number in re.findall(r'(?:width|height)="([\d.]+)"', svg)[:2]]
    # A last pixel that is covered in part mixes both colours, or shows nothing of the picture.
    for covered, wanted in zip(extent(pixels), size, strict=True):
        assert math.floor(wanted) <= covered <= math.ceil(wanted)
    assert 0.03 < ink(pixels) < 0.6
    assert len(fills_of(svg) & colors_in(pixels)) >= 2


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_html(expression: str, drawn: dict[str, Pixels]) -> None:
    text, pixels = PAGES[f"html {expression}"], drawn[f"html {expression}"]
    width, height = extent(pixels)
    assert width == WIDTH
    assert 200 < height < HEIGHT
    assert ink(pixels) > 0.01
    assert len(fills_of(text) & colors_in(pixels)) >= 2


def test_tabs_show_one_code_at_a_time(tmp_path: Path) -> None:
    two = explain_any("sum((3,4), axis=1)"), explain_any("(5,1) - (5,)")
    parts = [each.html().count("<details") for each in two]
    markup = markup_after_scripts("".join(each.html() for each in two), tmp_path)
    assert markup.count('data-wired="1"') == 2
    # The steps and the code; of the second, which has another alignment, that, and the steps and the code of both.
    assert markup.count('aria-pressed="true"') == 2 + 5
    assert len(re.findall(r"<details [^>]*hidden", markup)) == sum(parts) - 1 - 3
    assert markup.count(">Copy</button>") == 1 + 2


def test_a_page_whose_script_fails_is_noticed(tmp_path: Path) -> None:
    broken = explain_any("(5,1) - (5,)").html().replace("root.dataset.wired", "missing.dataset.wired")
    assert 'aria-pressed="true"' not in markup_after_scripts(broken, tmp_path)


def _narrow_windows(pages: list[str], directory: Path) -> list[tuple[int, float, int]]:
    """Of fragments, each in a window of 320 pixels: the width of the page, the scale of the least picture, and how far
    the words of a table are wider than its cells.
    """
    documents = [html.escape(f"<!DOCTYPE html><body style=margin:0>{page}") for page in pages]
    frames = [f'<iframe width="320" height="3000" srcdoc="{each}"></iframe>' for each in documents]
    script = """<script>onload = () => document.querySelectorAll('iframe').forEach(frame => {
        const page = frame.contentDocument, pictures = [...page.querySelectorAll('svg')];
        const scales = pictures.map(each => each.getBoundingClientRect().width / each.getAttribute('width'));
        const cells = [...page.querySelectorAll('td,th')].filter(each => !/\\s/.test(each.textContent.trim()));
        const broken = cells.filter(each => {
            const words = page.createRange();
            words.selectNodeContents(each);
            return words.getBoundingClientRect().height > 30;
        });
        frame.dataset.wide = page.documentElement.scrollWidth + ' ' + Math.min(...scales.filter(each => each)) + ' '
            + broken.length;
    })</script>"""
    markup = markup_after_scripts("".join(frames) + script, directory)
    shown = re.findall(r'data-wide="(\d+) ([\d.]+) (\d+)"', markup)
    return [(int(width), float(scale), int(broken)) for width, scale, broken in shown]


def test_explanations_can_be_read_in_narrow_windows(tmp_path: Path) -> None:
    pages = [explain_any(each).html() for each in NARROW]
    typed = pages[NARROW.index("dtype(int8, uint8)")]
    defects = [
        typed.replace("overflow-x:auto", ""),
        typed.replace("min-width", "min-height"),
        typed.replace("</style>", ".xarr-e td{word-break:break-all;max-width:9px}</style>", 1),
    ]
    seen = _narrow_windows([*pages, *defects], tmp_path)
    assert len(seen) == len(NARROW) + 3
    for width, scale, broken in seen[:-3]:
        assert (width, broken) == (320, 0) and scale > 0.74
    wide, shrunk, cut = seen[-3:]
    assert wide[0] > 320 and shrunk[1] < 0.6 and cut[2]


def test_what_is_missing_is_red(drawn: dict[str, Pixels]) -> None:
    red = (0xFB, 0xD9, 0xD9)
    assert red in colors_in(drawn["svg (3,4) + (3,)"])
    assert red in colors_in(drawn["html (3,4) @ (3,)"])
    assert red not in colors_in(drawn["svg (3,4) + (4,)"])


def test_an_empty_picture_is_noticed(drawn: dict[str, Pixels]) -> None:
    assert extent(drawn["empty"]) == (0, 0)
    white = drawn["white"]
    assert extent(white) == (300, 150)
    assert ink(white) == 0
    assert colors_in(white) == {BEHIND, (255, 255, 255)}
