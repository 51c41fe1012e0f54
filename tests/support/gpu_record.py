"""What a GPU was seen to do: the record of one session of `benchmarks/gpu_session.py`, which pages show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.support.checkout import CHECKOUT

PATH: Final = CHECKOUT / "docs" / "gpu_record.json"
#: The test of all element types of an operation, whose graph stands before the second part.
_OPERATION: Final = ("test_each_operation_has_the_bits_of_the_cpu[", "-all types]")


@dataclass(frozen=True)
class Record:
    """A session: the device and what ran on it, graphs of operations that passed with all types, tests by file.

    The tests of a file are how many passed, failed and were skipped.
    """

    device: tuple[str, ...]
    operations: frozenset[str]
    files: dict[str, tuple[int, int, int]]

    @property
    def text(self) -> str:
        """The file of it."""
        fields = asdict(self) | {"operations": sorted(self.operations)}
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def read(text: str) -> Record:
    """The record in the text of its file."""
    fields = json.loads(text)
    files = {name: (passed, failed, skipped) for name, (passed, failed, skipped) in fields["files"].items()}
    return Record(tuple(fields["device"]), frozenset(fields["operations"]), files)


def record_of_session(folder: Path) -> Record:
    """The record of what a session left in a folder: `gpu.json`, and the reports of pytest, `*.xml`."""
    # Two lines: the device with its driver, day and commit, and the versions of packages.
    device = tuple(json.loads((folder / "gpu.json").read_text(encoding="utf-8"))["device"][:2])
    operations, files = set(), {}
    for report in sorted(folder.glob("*.xml")):
        for file, name, outcome in _outcomes(report):
            counts = files.setdefault(file, [0, 0, 0])
            counts[outcome] += 1
            if name.startswith(_OPERATION[0]) and name.endswith(_OPERATION[1]) and not outcome:
                operations.add(name.removeprefix(_OPERATION[0]).removesuffix(_OPERATION[1]))
    counted = {file: (passed, failed, skipped) for file, (passed, failed, skipped) in sorted(files.items())}
    return Record(device, frozenset(operations), counted)


def _outcomes(report: Path) -> Iterator[tuple[str, str, int]]:
    """File and name of each test of a report, and 0 if it passed, 1 if it failed, 2 if it was skipped."""
    for case in ElementTree.parse(report).iter("testcase"):
        tags = {child.tag for child in case}
        outcome = 1 if tags & {"failure", "error"} else 2 if "skipped" in tags else 0
        yield f"{case.attrib['classname'].replace('.', '/')}.py", case.attrib["name"], outcome
