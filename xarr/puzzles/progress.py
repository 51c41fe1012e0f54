"""Which puzzles are solved: a small file in the user's folder for state."""

from __future__ import annotations

import json
import os
from pathlib import Path


def progress_file() -> Path:
    """`xarr/puzzles.json` in `XDG_STATE_HOME`, or in `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "xarr" / "puzzles.json"


def solved_puzzles() -> dict[int, int | None]:
    """The solved puzzles, with the elements that the best answer so far reads and writes, None of shapes.

    A file that cannot be read, or that is damaged, counts as none.
    """
    try:
        kept = json.loads(progress_file().read_text(encoding="utf-8"))
        return {int(number): None if score is None else int(score) for number, score in kept.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def note_solved(number: int, elements: int | None) -> bool:
    """Write down that a puzzle is solved; returns whether that was possible."""
    kept = solved_puzzles()
    before = kept.get(number)
    kept[number] = elements if before is None or elements is None else min(before, elements)
    path = progress_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(kept, sort_keys=True) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError:
        return False
    return True
