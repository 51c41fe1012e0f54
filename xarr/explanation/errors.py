"""Errors with explanations, for every function; the rest of this package is loaded when one is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xarr.explanation.broadcast import (
        broadcast_error as broadcast_error,
        explain_shapes as explain_shapes,
    )
    from xarr.explanation.sheets.contraction import product_error as product_error
else:  # Imported in functions, because it takes a tenth of the time of `import xarr`.

    def broadcast_error(*args: Any, **options: Any) -> Any:
        """As `xarr.explanation.broadcast.broadcast_error`."""
        from xarr.explanation import broadcast

        return broadcast.broadcast_error(*args, **options)

    def explain_shapes(*args: Any, **options: Any) -> Any:
        """As `xarr.explanation.broadcast.explain_shapes`."""
        from xarr.explanation import broadcast

        return broadcast.explain_shapes(*args, **options)

    def product_error(*args: Any, **options: Any) -> Any:
        """As `xarr.explanation.sheets.contraction.product_error`."""
        from xarr.explanation.sheets import contraction

        return contraction.product_error(*args, **options)
