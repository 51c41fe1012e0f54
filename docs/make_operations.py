"""Write `docs/operations.md` from `docs/operations.tsv` and the library: `python docs/make_operations.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "operations.md"

sys.path[:0] = [str(CHECKOUT / "docs"), str(CHECKOUT), str(CHECKOUT / "backends")]

from operation_rows import Row as Row, op_classes, rows  # noqa: E402

from tests.elementwise_ops import REGULAR  # noqa: E402
from tests.support.completeness import REWRITTEN, entry, function, is_composite, read_back  # noqa: E402
from tests.ulp_bounds import BOUNDS, DIFFERENCES  # noqa: E402
from xarr.ir.op import Op  # noqa: E402

NOT_YET: Final = "not yet"
#: The file that tries each regular element-wise op without its name.
_ELEMENTWISE: Final = "test_elementwise.py"
_RANDOM_CALLS: Final = "test_fuzz.py"

_HEAD: Final = """\
# Operations

<!-- Written by docs/make_operations.py from docs/operations.tsv: change that and run the script. -->

XLA's operations, what each is in xarr, who runs it, and how it is tried. The attributes are those of the op in the
graph. An entry names the module of a backend that has a row for the op; "its parts" means that the backend runs the
ops that this one is defined by, "stage static" that this stage of compilation rewrites it. A function that adds no
op of its own shows the op that it is made of.

Tests are files in `tests/lax/`; in parentheses stand the cases of `tests/support/graphs.py` that XLA runs too.
Results are XLA's to the bit unless the last column says otherwise; ULP bounds and special values by element type
are on the page [Accuracy beside XLA](accuracy.md). What holds for every float operation stands only there: xarr
keeps subnormal numbers, which XLA's CPU flushes to zero."""


def _functions(row: Row) -> str:
    shown = [
        f"`lax.{name}`" if callable(function(bare)) else f"`{name}`: {NOT_YET}"
        for name, bare in zip(row.functions, row.names, strict=True)
    ]
    return ", ".join(shown)


def _graph(row: Row, op: type[Op] | None) -> str:
    if op is None:
        return NOT_YET
    attributes = ", ".join(field.name for field in fields(op))
    return f"`{row.op}`" + (f" ({attributes})" if attributes else "")


def _entry(package: str, op: type[Op] | None) -> str:
    result = op and entry(package, op)
    if result is not None:
        return f"`{result}`"
    if op is not None and op.__name__ in REWRITTEN:
        return f"stage {REWRITTEN[op.__name__]}"
    has_any = any(entry(package, each) for each in op_classes().values())
    return "its parts" if op is not None and has_any and is_composite(op) else NOT_YET


@cache
def _test_files() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in CHECKOUT.glob("tests/lax/test_*.py")}


@cache
def _find_drawn() -> str:
    """The names of the operations of which random calls are made."""
    modules = ["tests/lax/test_fuzz.py", *CHECKOUT.glob("tests/support/draws/*.py")]
    return "".join((CHECKOUT / path).read_text(encoding="utf-8") for path in modules)


def _tests(row: Row, op: type[Op] | None) -> str:
    names = "|".join(re.escape(name) for name in row.names)
    use = re.compile(rf"\blax\.({names})\b|[\"']({names})[\"']")
    tried = {_ELEMENTWISE} if op in REGULAR else set()
    tried.update(name for name, text in _test_files().items() if use.search(text))
    if op in REGULAR or f'"{row.operation}"' in _find_drawn():
        tried.add(_RANDOM_CALLS)
    files = [f"`{name}`" for name in sorted(tried)]
    cases = read_back().get(op, []) if op is not None else []
    own = [name for name in cases if op is not None and re.match(rf"{op.__name__}\b", name)] or cases[:1]
    if op is None or not all(callable(function(name)) for name in row.names):
        return NOT_YET
    return ", ".join(files) + (f" ({', '.join(own)})" if own else "")


def _differences(row: Row) -> str:
    bounds = [bound for bound in BOUNDS if bound.function in row.names and bound.tested]
    special = [one for one in DIFFERENCES if set(row.names).intersection(one.functions)]
    parts = [row.differences] if row.differences else []
    if bounds:
        most = max(bound.tested for bound in bounds)
        dtypes = ", ".join(bound.dtype for bound in bounds)
        parts.append(f"up to {most} ULP ({dtypes})")
    differences = (
        f"{'/'.join(_kinds(one.dtypes))}, where {one.condition}: {one.xarr}, XLA {one.xla}" for one in special
    )
    return "; ".join([*parts, *differences]) or "none"


def _kinds(dtypes: Iterable[str]) -> list[str]:
    """`complex` for all complex types and so on, to keep the cells short."""
    return list(dict.fromkeys(re.sub(r"^(complex|u?int)\d+$", r"\1", dtype) for dtype in dtypes))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cells(row: Row) -> tuple[str, ...]:
    """The row as it stands on the page."""
    op = op_classes().get(row.op)
    return (
        row.operation,
        _functions(row),
        row.family,
        _graph(row, op),
        _entry("xarr_reference", op),
        _entry("xarr_numpy", op),
        _entry("xarr_cupy", op),
        _tests(row, op),
        _differences(row) if op is not None else NOT_YET,
    )


def page() -> str:
    """The whole page."""
    header = (
        *("operation", "function", "family", "in the graph (attributes)", "reference", "NumPy", "CuPy"),
        *("tests (graph cases)", "differences from XLA"),
    )
    lines = [_line(header), _line(["---"] * len(header)), *[_line(cells(row)) for row in rows()]]
    return _HEAD + "\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
