"""Puzzles on shapes, broadcasting, indices and layouts: `check(7, "a[:, None] + b")`; `PUZZLES` lists them."""

from xarr.puzzles.catalogue import PUZZLES as PUZZLES, puzzle as puzzle
from xarr.puzzles.checker import check as check
from xarr.puzzles.hint_steps import hint as hint
from xarr.puzzles.quiz import QUIZ as QUIZ, Marks as Marks, mark as mark
from xarr.puzzles.records import Puzzle as Puzzle
from xarr.puzzles.verdicts import Verdict as Verdict
