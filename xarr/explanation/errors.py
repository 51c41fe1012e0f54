"""Errors with explanations, for every function; the rest of this package is loaded when one is raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

if TYPE_CHECKING:
    from xarr.explanation.broadcast import BroadcastExplanation, ExplainedBroadcastError
    from xarr.explanation.sheets.contraction import ExplainedProductError


def broadcast_error(
    op: str,
    shapes: Sequence[Sequence[SupportsIndex]],
    names: Sequence[str] | None = None,
    dtypes: Sequence[str | None] | None = None,
    broadcast_dimensions: Sequence[SupportsIndex] | None = None,
    *,
    explicit: bool = False,
    problem: str | None = None,
) -> ExplainedBroadcastError:
    """As `xarr.explanation.broadcast.broadcast_error`."""
    # Imported here, as below, because it takes a tenth of the time of `import xarr`.
    from xarr.explanation import broadcast

    return broadcast.broadcast_error(
        op, shapes, names, dtypes, broadcast_dimensions, explicit=explicit, problem=problem
    )


def product_error(
    op: str,
    shapes: Sequence[Sequence[SupportsIndex]],
    names: Sequence[str] | None,
    dtypes: Sequence[str | None],
    pairs: Sequence[tuple[int, int]] | None = None,
    problem: str | None = None,
) -> ExplainedProductError:
    """As `xarr.explanation.sheets.contraction.product_error`."""
    from xarr.explanation.sheets import contraction

    return contraction.product_error(op, shapes, names, dtypes, pairs, problem)


def explain_shapes(
    *shapes: Sequence[SupportsIndex],
    op: str = "add",
    names: Sequence[str] | None = None,
    dtypes: Sequence[str | None] | None = None,
) -> BroadcastExplanation:
    """As `xarr.explanation.broadcast.explain_shapes`."""
    from xarr.explanation import broadcast

    return broadcast.explain_shapes(*shapes, op=op, names=names, dtypes=dtypes)
