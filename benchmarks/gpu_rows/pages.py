"""Figures that were measured on a GPU, as a page shows them: the lines of a file that `--json` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any, Final

from gpu_rows.timing import TimedLine

#: The heads of columns, and the contenders in them.
_CONTENDERS: Final = {
    "xarr": "xarr",
    "recorded": "lazy",
    "replay": "replay",
    "CuPy": "cupy",
    "its best": "cupy best",
    "JAX": "jax",
    "PyTorch": "torch",
    "compiled": "torch.compile",
}
_PEERS: Final = {"CuPy": "cupy", "JAX": "jax", "PyTorch": "torch"}


#: What a page says of a line that misses something, or has no time.
_MISSED: Final = "- "


def met_lines(page: str) -> frozenset[tuple[str, str]]:
    """The titles and dtypes of the lines of a page that have a time of xarr and miss nothing."""
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line[:3] == "| ("
    ]
    timed = {(cells[0], cells[1]) for cells in table if cells[2].replace(".", "").isdigit()}
    missed = [line for line in page.splitlines() if line.startswith(f"{_MISSED}(")]
    return frozenset(
        [
            each
            for each in timed
            if not any(line.startswith(f"{_MISSED}{', '.join(each)}:") for line in missed)
        ]
    )


def merge(files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of several files: of a line in several those of the first, with contenders that only others have."""
    merged = {**files[0], "lines": [dict(each) for each in files[0]["lines"]]}
    by_line = {(each["row"], each["name"], each["dtype"]): each for each in merged["lines"]}
    for each in [line for file in files[1:] for line in file["lines"]]:
        known = by_line.setdefault((each["row"], each["name"], each["dtype"]), each)
        if known is each:
            merged["lines"].append(each)
        elif known["seconds"]:
            known["seconds"] = {**each["seconds"], **known["seconds"]}
    return merged


def print_figures(figures: Mapping[str, Any]) -> str:
    """The device, the table of times in milliseconds, means of ratios, and what is wanted and missed."""
    lines = [
        TimedLine(**{name: value for name, value in each.items() if name != "verdicts"})
        for each in figures["lines"]
    ]
    heads = ["row", "dtype", *_CONTENDERS, *[f"÷ {name}" for name in _PEERS], "share"]
    table = [heads, ["---"] * len(heads), *map(_list_cells, lines)]
    parts = [
        *(f"{each}\n" for each in figures["device"][:3]),
        *["| " + " | ".join(cells) + " |" for cells in table],
        "",
        _print_means(lines),
        _print_first_calls(figures.get("first calls", {})),
        "### What is wanted, and missed\n",
        *(_list_misses(lines) or ["Nothing."]),
    ]
    return "\n".join(parts) + "\n"


def _list_cells(line: TimedLine) -> list[str]:
    times = [_print_milliseconds(line.seconds.get(name)) for name in _CONTENDERS.values()]
    ratios = [line.ratio(name) for name in _PEERS.values()]
    return [
        *(f"({line.row}) {line.name}", line.dtype, *times),
        *["–" if ratio is None else f"{ratio:.2f}" for ratio in ratios],
        "–" if line.share is None else f"{line.share:.0%}",
    ]


def _print_milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:.3g}"


def _print_means(lines: Sequence[TimedLine]) -> str:
    """Geometric means of xarr over each peer."""
    means = []
    for name, who in _PEERS.items():
        ratios = [ratio for ratio in (line.ratio(who) for line in lines) if ratio is not None]
        if ratios:
            means.append(f"{geometric_mean(ratios):.2f} of {name}'s time in {len(ratios)} lines")
    return f"Geometric means: xarr takes {', '.join(means) or 'what no peer was measured for'}.\n"


def _print_first_calls(times: Mapping[str, Any]) -> str:
    """Seconds of first calls, without and with a cache of compiled code."""
    told = [
        f"{name} {seconds if isinstance(seconds, str) else ' and '.join(f'{each:.2f}' for each in seconds)}"
        for name, seconds in times.items()
    ]
    return f"(o) First calls of (a), s, cold and from the cache: {'; '.join(told) or 'not measured'}.\n"


def _list_misses(lines: Sequence[TimedLine]) -> list[str]:
    """The lines that miss something, and those of which xarr has no time, with the reason."""
    missed = []
    for line in lines:
        verdicts = [each for each in line.verdicts if not each.endswith(": met")]
        if verdicts:
            missed.append(f"- ({line.row}) {line.name}, {line.dtype}: {'; '.join(verdicts)}.")
    return missed
