"""The steps in which a picture comes to be: what each says, what it shows and what it is about; and the stepper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import prod
from textwrap import wrap
from typing import Final

from xarr.explanation.notation import term

#: A picture has at most so many steps: the style has rules for these.
MOST_STEPS: Final = 7
#: Characters of a line.
_CHARACTERS: Final = 100
#: Terms of a sum that are written out: the first ones and the last.
_TERMS: Final = 4


@dataclass(frozen=True, slots=True)
class PictureStep:
    """One step: its name, what it says, and code that says the same.

    `shows` are the keys of what the picture has from this step on, `lights` of what the step is about.
    """

    name: str
    text: str
    code: str = ""
    shows: tuple[str, ...] = ()
    lights: tuple[str, ...] = ()


def marks_of(steps: Sequence[PictureStep]) -> dict[str, str]:
    """The classes of what is drawn, by key: ` p3` is there from the third step on, the second is about ` h2`."""
    assert len(steps) <= MOST_STEPS, f"{len(steps)} steps, and the style has {MOST_STEPS}"
    marks: dict[str, str] = {}
    for number, step in enumerate(steps, 1):
        for kind, keys in (("p", step.shows if number > 1 else ()), ("h", step.lights)):
            for key in dict.fromkeys(keys):
                marks[key] = f"{marks.get(key, '')} {kind}{number}"
    return marks


def step_lines(steps: Sequence[PictureStep]) -> list[str]:
    """The steps as numbered lines of text that fit on a screen, code below what it says."""
    lines = []
    for number, step in enumerate(steps, 1):
        lines += wrap(f"{number} {step.name}: {step.text}", _CHARACTERS, subsequent_indent="  ")
        lines += wrap(step.code, _CHARACTERS, initial_indent="    ", subsequent_indent="      ")
    return lines


def step_block(steps: Sequence[PictureStep]) -> list[str]:
    """The steps as a paragraph of text with an empty line behind; nothing of none."""
    return ["steps:", *(f"  {line}" for line in step_lines(steps)), ""] if steps else []


def render_steps(picture: str, steps: Sequence[PictureStep]) -> str:
    """A picture and below it its steps, of which scripts make a stepper; without scripts they are a list."""
    if not steps:
        return picture
    items = [f"<li><strong>{escape(step.name)}</strong>: {_words(step)}</li>" for step in steps]
    return f'<div>{picture}<ol class="steps">{"".join(items)}</ol></div>'


def _words(step: PictureStep) -> str:
    return escape(step.text) + (f"<br/><code>{escape(step.code)}</code>" if step.code else "")


def _style() -> str:
    """Rules by which what is to come is hidden, and what a step is about keeps its colour and gets a thick edge."""
    numbers = range(1, MOST_STEPS + 1)
    within = [f"[data-step='{number}'] .xarr-b" for number in numbers]
    later = [",".join(f".p{each}" for each in numbers[number:]) for number in numbers]
    hidden = ",".join(f"{own} :is({each})" for own, each in zip(within, later, strict=True) if each)
    lit = ",".join(f"{own} .h{number} rect" for own, number in zip(within, numbers, strict=True))
    faint = ",".join(
        f"{own}:has(.h{number}) g:not(.h{number},.lit) rect"
        for own, number in zip(within, numbers, strict=True)
    )
    shown = f"{lit}{{fill-opacity:.5;stroke-width:3}}{faint}{{fill-opacity:.06}}"
    return f"{hidden}{{opacity:0;pointer-events:none}}{shown}"


STEP_STYLE: Final = _style()


def join_terms(count: int, term: Callable[[int], str], sign: str) -> str:
    """Terms with a sign between them: the first ones and the last of many."""
    if count <= _TERMS:
        return sign.join(map(term, range(count)))
    return sign.join([*map(term, range(_TERMS - 1)), "\N{HORIZONTAL ELLIPSIS}", term(count - 1)])


def unravel(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The index of an element by its number in row-major order."""
    index = []
    for axis, size in enumerate(sizes):
        index.append(number // prod(sizes[axis + 1 :]) % size)
    return tuple(index)


def write_element(name: str, index: Sequence[int | str]) -> str:
    """`x[1,0]`, `(x + y)[1,0]`; of an array without axes its name alone."""
    return term(name) + (f"[{','.join(map(str, index))}]" if index else "")
