"""The words of the source: no retired ones, docstrings that open well, functions named by verbs or nouns.

`LEFT` counts what the parts of the source that are not yet `SWEPT` may still have; it may only fall.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.support import words
from tests.support.checkout import CHECKOUT

SOURCE = sorted([*CHECKOUT.glob("xarr/**/*.py"), *CHECKOUT.glob("backends/**/*.py")])
SWEPT = tuple(
    CHECKOUT / "xarr" / name for name in ("arrays", "explainers", "explanation", "functions", "indexing")
)
CHECKS = (words.retired_words, words.odd_openings, words.names_without_verb)
LEFT = {words.retired_words: 978, words.odd_openings: 152, words.names_without_verb: 344}


Check = Callable[[Iterable[Path]], list[str]]


def _is_swept(path: Path) -> bool:
    return any(folder in path.parents for folder in SWEPT)


@pytest.fixture(scope="module")
def problems() -> dict[tuple[Check, bool], list[str]]:
    """The problems of each check, where all is swept and elsewhere.  Each file is parsed once."""
    lists: dict[tuple[Check, bool], list[str]] = {}
    for path in SOURCE:
        for check in CHECKS:
            lists.setdefault((check, _is_swept(path)), []).extend(check([path]))
    return lists


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_where_all_is_swept(check: Check, problems: dict[tuple[Check, bool], list[str]]) -> None:
    assert not problems[check, True], "\n".join(problems[check, True])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_more_than_before_elsewhere(check: Check, problems: dict[tuple[Check, bool], list[str]]) -> None:
    left = problems[check, False]
    assert len(left) <= LEFT[check], "\n".join([*left, f"{len(left)} are over {LEFT[check]}"])


def test_what_is_swept_is_there() -> None:
    assert all(any(folder in path.parents for path in SOURCE) for folder in SWEPT)


# The checks can fail.

PLAIN = '''
"""Indices of matches, written in place."""

__all__ = ["place"]


class Nodes:
    @property
    def traced(self): ...

    def at(self, index): ...

    @classmethod
    def of(cls, nodes): ...


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
