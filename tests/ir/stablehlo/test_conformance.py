"""The StableHLO project's own test programs: each passes, or is listed with a reason.

`python -m tests.ir.stablehlo.test_conformance` writes the list anew, but keeps reasons other than "needs …".
"""

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.stablehlo_checks import Case, cases, outcome

DATA = CHECKOUT.parent / "shared" / "data" / "stablehlo"
LISTING = CHECKOUT / "tests" / "stablehlo_unsupported.txt"
FOLDERS = ("interpret", "testdata")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the test programs of StableHLO are not at {DATA}")


def every_case() -> list[Case]:
    paths = [path for folder in FOLDERS for path in sorted((DATA / folder).glob("*.mlir"))]
    return [case for path in paths for case in cases(path)]


def read_list() -> dict[str, str]:
    """The name of each case that may fail, and why."""
    lines = LISTING.read_text(encoding="utf-8").splitlines()
    return dict(line.split("  ", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str | None]:
    return {case.name: outcome(case, "numpy") for case in every_case()}


def test_every_program_passes_or_is_listed(outcomes: dict[str, str | None]) -> None:
    known = read_list()
    problems = [
        f"{name}: {what}" for name, what in outcomes.items() if what is not None and name not in known
    ]
    assert not problems, "\n".join(problems)


def test_no_listed_program_passes(outcomes: dict[str, str | None]) -> None:
    passing = [name for name in read_list() if outcomes.get(name, "there is no such program") is None]
    assert not passing, f"remove from {LISTING.name}:\n" + "\n".join(passing)


def test_each_reason_is_true(outcomes: dict[str, str | None]) -> None:
    wrong = [
        f"{name}: {why!r}, but {outcomes.get(name, 'there is no such program')!r}"
        for name, why in read_list().items()
        if name not in outcomes or (why.startswith("needs ") and outcomes[name] not in (None, why))
    ]
    assert not wrong, "\n".join(wrong)


def rewrite() -> None:
    """Write the list of what fails now."""
    old, lines = (
        read_list(),
        ["# Programs of StableHLO that do not pass, and why; written by test_conformance.py.", ""],
    )
    results = {case.name: outcome(case, "numpy") for case in every_case()}
    for name, what in results.items():
        if what is not None:
            kept = old.get(name, "needs").startswith("needs") or what.startswith("needs")
            lines.append(f"{name}  {what if kept else old[name]}")
    LISTING.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(results)} programs, {sum(what is None for what in results.values())} pass")


if __name__ == "__main__":
    rewrite()
