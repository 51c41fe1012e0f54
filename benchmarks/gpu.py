"""The GPU beside its peers, xarr, CuPy, jit JAX and PyTorch; without a GPU, what each row asks of one.

    python benchmarks/gpu.py --seconds 500 --json gpu.json     # as many rows as fit, the most important first
    python benchmarks/gpu.py --rows a,c --dtypes float32 --quick
    python benchmarks/gpu.py --static                          # kernels, bytes, registers, occupancy: no GPU
    python benchmarks/gpu.py --static --page docs/gpu_benchmark.md

The static table is what is printed where there is no GPU.  Registers need NVRTC (nvidia-cuda-nvrtc, here or in the
directory that NVRTC_DIRECTORY names).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import measure
from gpu_rows import ROWS
from gpu_rows.row import Row
from gpu_rows.static import COLUMNS, StaticLine, cells, markdown, static_lines

from tests.cuda import nvrtc

START: Final = "<!-- Written by benchmarks/gpu.py from here on. -->"
DTYPES: Final = tuple(dict.fromkeys(dtype for row in ROWS for dtype in row.dtypes))


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns that are as wide as what is in them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def print_static(lines: Sequence[StaticLine]) -> None:
    print("\n".join(align([COLUMNS, *map(cells, lines)])))
    exceeding = [line for line in lines if line.findings]
    print(f"\n{len(exceeding)} of {len(lines)} lines ask for more than they should:")
    for line in exceeding:
        print(f"({line.row}) {line.name}, {line.dtype}: {'; '.join(line.findings)}")


def write_page(page: Path, lines: Sequence[StaticLine]) -> None:
    """Write the table below the line of a page that says so."""
    above = page.read_text(encoding="utf-8").partition(START)[0]
    page.write_text(f"{above}{START}\n\n{markdown(lines)}\n", encoding="utf-8")


def parse_list(text: str, known: Iterable[str], what: str) -> list[str]:
    parts = [part for part in text.split(",") if part]
    if wrong := set(parts) - set(known):
        raise argparse.ArgumentTypeError(f"wanted {what}, got {', '.join(sorted(wrong))}")
    return parts


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    letters = sorted({row.letter for row in ROWS})
    parser.add_argument(
        "--rows",
        type=lambda text: parse_list(text, letters, f"letters from {letters[0]} to {letters[-1]}"),
        default=letters,
        help="letters of the rows, such as a,c",
    )
    parser.add_argument(
        "--dtypes",
        type=lambda text: parse_list(text, DTYPES, f"some of {', '.join(DTYPES)}"),
        default=[],
        help="such as float32; all of each row where it is left out",
    )
    parser.add_argument("--static", action="store_true", help="what the rows ask of a GPU: none is needed")
    parser.add_argument("--small", action="store_true", help="at the sizes of tests: whether it runs")
    parser.add_argument("--page", type=Path, help="also write the static table into this page")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None, rows: Iterable[Row] = ROWS) -> None:
    options = parse(arguments)
    rows = [row for row in rows if row.letter in options.rows]
    if nvrtc.library() is None:
        print("no registers: pip install nvidia-cuda-nvrtc, or set NVRTC_DIRECTORY", file=sys.stderr)
    lines = list(static_lines(rows, options.dtypes, options.small))
    print(measure.versions(("numpy", "nvidia-cuda-nvrtc")))
    print_static(lines)
    if options.page:
        write_page(options.page, lines)
    if options.json:
        figures = {"static": [asdict(line) | {"findings": line.findings} for line in lines]}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
