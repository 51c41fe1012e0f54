"""The words of the source: no retired ones, docstrings that open well, functions named by verbs or nouns.

`LEFT` has the folders and files that are not yet in plain words, and how many of each they still have: the numbers
fall, and the rows vanish.  Elsewhere there are none.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.support import words
from tests.support.checkout import CHECKOUT

FOLDERS = ("xarr", "backends", "tests", "benchmarks", "docs", "examples", ".ci")
SOURCE = sorted(path for folder in FOLDERS for path in CHECKOUT.glob(f"{folder}/**/*.py"))
CHECKS = (words.retired_words, words.odd_openings, words.names_without_verb)

# Retired words, docstrings that open oddly, functions named by participles or prepositions.
LEFT: dict[str, tuple[int, int, int]] = {
    # The texts of these two are in the digests of answers that take minutes to make.
    "tests/random/test_distributions.py": (0, 1, 0),
    "tests/support/answers.py": (0, 0, 1),
}

Check = Callable[[Iterable[Path]], list[str]]


def _row_of(path: Path) -> str | None:
    """The row of `LEFT` that a file belongs to, None for none."""
    name = path.relative_to(CHECKOUT).as_posix()
    return max((row for row in LEFT if name == row or name.startswith(f"{row}/")), key=len, default=None)


@pytest.fixture(scope="module")
def problems() -> dict[Check, dict[str | None, list[str]]]:
    """The problems of each check by row of `LEFT`.  Each file is parsed once."""
    lists: dict[Check, dict[str | None, list[str]]] = {check: {} for check in CHECKS}
    for path in SOURCE:
        for check in CHECKS:
            lists[check].setdefault(_row_of(path), []).extend(check([path]))
    return lists


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_as_many_as_are_left(check: Check, problems: dict[Check, dict[str | None, list[str]]]) -> None:
    number = CHECKS.index(check)
    for row, lines in problems[check].items():
        left = 0 if row is None else LEFT[row][number]
        assert len(lines) == left, "\n".join([*lines, f"{row or 'elsewhere'} has {len(lines)}, not {left}"])


def test_every_folder_is_read() -> None:
    folders = {path.relative_to(CHECKOUT).parts[0] for path in SOURCE}
    assert folders == {*FOLDERS}


def test_each_row_is_there() -> None:
    rows = Counter(_row_of(path) for path in SOURCE)
    assert all(rows[row] for row in LEFT), "remove the rows of folders that are gone"
    assert all(any(counts) for counts in LEFT.values()), "remove the rows of folders that are done"


# The checks can fail.

PLAIN = '''
"""Indices of matches, written in place, one in turn.  Units in the last place.  Rounded to two decimal places."""

__all__ = ["place"]


class Nodes:
    @property
    def traced(self): ...

    def at(self, index): ...

    def __and__(self, other): ...

    @classmethod
    def of(cls, nodes): ...


@pytest.fixture(scope="module")
def unfused(): ...


def place(arr, mask, vals):
    """The elements of `vals`, where the mask holds."""
    in_place, embed = True, False  # what of both is written


def searchsorted(a): ...


def feed(is_taken): ...


def is_known(node): ...
'''


def problems_of(check: Check, source: str, folder: Path) -> list[str]:
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    return [problem.removeprefix(f"{path}:") for problem in check([path])]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_plain_words_have_no_problems(check: Check, tmp_path: Path) -> None:
    assert problems_of(check, PLAIN, tmp_path) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("found = 1", "1 found: say result"),
        ("def f(given): ...", "1 given: say argument"),
        ("for _turn in (): ...", "1 _turn: say iteration"),
        ("class Record:\n    places: int", "2 places: say indices"),
        ("def extreme_place(): ...", "1 extreme_place: say index"),
        ("self.THIN = 1", "1 THIN: say unmaterialised"),
        ("[index for index, taken in ()]", "1 taken: say operands"),
        ("x = 1  # the seams of tiles", "1 'seams' in a comment or docstring: say tile boundaries"),
        ("x = 1  # written in place, in its place", "1 'place' in a comment or docstring: say index"),
        ('"""Turns of a loop."""', "1 'turns' in a comment or docstring: say iterations"),
        ('def f():\n    """An index.\n\n    Whoever asks."""', "2 'whoever' in a comment"),
    ],
)
def test_retired_word_is_seen(source: str, problem: str, tmp_path: Path) -> None:
    (seen,) = problems_of(words.retired_words, source, tmp_path)
    assert seen.startswith(problem)


@pytest.mark.parametrize("opening", ["The same, backwards.", "What is left.", "How many.", "Whoever asks."])
def test_odd_opening_is_seen(opening: str, tmp_path: Path) -> None:
    source = f'class Record:\n    def f(self):\n        """{opening}"""'
    assert problems_of(words.odd_openings, source, tmp_path) == [f"2 f: {opening}"]


@pytest.mark.parametrize(
    "name", ["_given", "_along", "broadcasted", "taken_apart", "from_to", "_of", "laid_out"]
)
def test_function_without_verb_is_seen(name: str, tmp_path: Path) -> None:
    source = f"def f():\n    def {name}(): ..."
    assert problems_of(words.names_without_verb, source, tmp_path) == [f"2 {name}: wanted a verb, or a noun"]
