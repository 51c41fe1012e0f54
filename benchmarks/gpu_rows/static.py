"""The table that needs no GPU: kernels, bytes and registers of each row at its full size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import measure

from gpu_rows.listing import Work, least_bytes, no_device, work_of
from gpu_rows.occupancy import occupancy
from gpu_rows.row import Row
from tests.cuda import nvrtc
from xarr_cupy.codegen.kernel_calls import BLOCK
from xarr_cupy.machine_code import OPTIONS

ARCHITECTURES: Final = ("sm_80", "sm_90")
#: Bytes that are moved over the least, from which on a row is a finding: all above it is moved for nothing.
MOST_MOVED: Final = 1.05
#: Bytes that kernels ask for over the least, from which on a row is a finding: tiles in shared memory would spare them.
MOST_ACCESSED: Final = 16


@dataclass(frozen=True)
class KernelUsage:
    """The resources of an architecture that a kernel takes, and the occupancy of its blocks by that."""

    kernel: str
    architecture: str
    registers: int
    spills: int
    stack: int
    shared: int
    occupancy: float


@dataclass(frozen=True)
class StaticLine:
    """The work that a row asks of a device for one dtype; `least` are the bytes of inputs and results, each once."""

    row: str
    name: str
    dtype: str
    wanted_kernels: int
    kernels: int
    libraries: int
    copies: int
    host: list[str]
    least: int
    moved: float
    accessed: float
    usages: list[KernelUsage]

    @property
    def findings(self) -> list[str]:
        """Where it is more than is wanted."""
        launches = self.kernels + self.libraries + self.copies
        spilled = sum(each.spills + each.stack for each in self.usages)
        return [
            text
            for text, holds in (
                (f"{launches} launches, wanted {self.wanted_kernels}", launches > self.wanted_kernels),
                (f"{self.moved:.2f} × the least bytes", self.moved > MOST_MOVED),
                (
                    f"loads and stores of {_times(self.accessed)} × them",
                    self.accessed > MOST_ACCESSED * max(self.moved, 1),
                ),
                (f"the host: {', '.join(self.host)}", bool(self.host)),
                (f"{spilled} bytes of spills and stack", bool(spilled)),
            )
            if holds
        ]


def static_lines(rows: Iterable[Row], dtypes: Sequence[str], small: bool = False) -> Iterator[StaticLine]:
    """The lines of the table, each as it is ready.  small: at the sizes of tests."""
    with no_device():
        for row in rows:
            for dtype in [each for each in row.dtypes if not dtypes or each in dtypes]:
                measure.progress(f"({row.letter}) {row.name} {dtype}")
                case = row.case(dtype, *(row.small if small else row.size))
                work, least = work_of(case, row), least_bytes(case)
                yield StaticLine(
                    *(row.letter, row.name, dtype, row.kernels, work.kernels, work.libraries, work.copies),
                    *(work.host, least, work.moved / least, work.accessed / least, usages_of(work)),
                )
    measure.progress("")


def usages_of(work: Work) -> list[KernelUsage]:
    """The resources that each kernel that is launched takes; none where NVRTC is not installed."""
    if nvrtc.library() is None:
        return []
    return [
        KernelUsage(
            *(each.kernel, architecture, each.registers, each.spills, each.stack, each.shared),
            occupancy(architecture, BLOCK, each.registers, each.shared),
        )
        for text, names in work.texts.items()
        for architecture in ARCHITECTURES
        for each in _usage(text, architecture)
        if each.kernel in names
    ]


@lru_cache(1024)
def _usage(text: str, architecture: str) -> list[nvrtc.Usage]:
    return nvrtc.usage_of(text, architecture, OPTIONS)


COLUMNS: Final = (
    *(
        "row",
        "dtype",
        "kernels",
        "wanted",
        "libraries",
        "copies",
        "host steps",
        "least MB",
        "moved",
        "accessed",
    ),
    *("registers", "spills, stack", "shared", *ARCHITECTURES),
)


def cells(line: StaticLine) -> tuple[str, ...]:
    """A line of the table: of its kernels the most that one takes, and the lowest occupancy."""
    usages = line.usages

    def most(numbers: Callable[[KernelUsage], int]) -> str:
        return str(max(map(numbers, usages))) if usages else "–"

    low = [
        f"{min(each.occupancy for each in usages if each.architecture == name):.0%}" if usages else "–"
        for name in ARCHITECTURES
    ]
    return (
        *(f"({line.row}) {line.name}", line.dtype, str(line.kernels), str(line.wanted_kernels)),
        *(str(line.libraries or ""), str(line.copies or ""), ", ".join(line.host)),
        *(f"{line.least / 1e6:,.3g}" if line.least < 1e9 else f"{line.least / 1e6:,.0f}", _times(line.moved)),
        *(_times(line.accessed), most(lambda each: each.registers)),
        *(most(lambda each: each.spills + each.stack), most(lambda each: each.shared), *low),
    )


def _times(number: float) -> str:
    return f"{number:.2f}" if number < 100 else f"{number:,.0f}"


def markdown(lines: Sequence[StaticLine]) -> str:
    """The table, and then the findings."""
    head = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join(["---"] * len(COLUMNS)) + " |"]
    rows = ["| " + " | ".join(cells(line)) + " |" for line in lines]
    lists = [f"- ({x.row}) {x.name}, {x.dtype}: {'; '.join(x.findings)}." for x in lines if x.findings]
    findings = ["", "## Rows that ask for more than they should", "", *(lists or ["None."])]
    return "\n".join([*head, *rows, *findings])
