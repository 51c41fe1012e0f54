"""The pretty forms of operations: what differs from one to the next, as a table.

Most forms are operands and `name = attribute` items with commas between, then attributes in braces, then
types.  A row says which generic attribute each item is, and how the types are to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from xarr.errors import ValueRangeError
from xarr.ir.stablehlo.syntax_tree import Attribute, ParsedOperation, ReadType

Items = dict[str, Attribute]
Types = tuple[ReadType, ...]

_FORMAT: Final = re.compile(r"e(\d{1,3})m(\d{1,3})$")


@dataclass(frozen=True)
class Form:
    """The syntax of one operation.

    * `renames` - names of the form -> names of the generic form,
    * `positional` - the generic names of the items without a name, in order,
    * `adjust` - rewrites the attributes where a new name is not enough,
    * `results` - how many results there are when the form lists types without an arrow: all of the types
      ("each"), none ("none"), or one of the last type ("one"),
    * `same` - whether one type without an arrow is the type of every operand too.
    """

    renames: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    adjust: Callable[[Items], None] | None = None
    results: str = "one"
    same: bool = True

    def apply(self, operation: ParsedOperation, unnamed: list[Attribute]) -> None:
        """Give the attributes of `operation` their generic names."""
        items = operation.attributes
        items.update(zip(self.positional, unnamed, strict=False))
        for short, long in self.renames.items():
            if short in items:
                items[long] = items.pop(short)
        if self.adjust is not None:
            self.adjust(items)

    def set_types(self, operation: ParsedOperation, left: Types, right: Types | None) -> None:
        """Set the types of `operation` from those before and after the arrow (None: there is no arrow)."""
        count = len(operation.operands)
        if right is not None:
            operation.operand_types, operation.result_types = left, right
        elif self.results == "none":
            operation.operand_types = left if len(left) == count else left * count
        else:
            operation.result_types = left if self.results == "each" else left[-1:]
            operation.operand_types = _operand_types(left, count, self.same)


def _operand_types(left: Types, count: int, same: bool) -> Types | None:
    if not same:
        return None
    if len(left) == count:
        return left
    # select writes the type of the predicate and one for both branches.
    return left * count if len(left) == 1 else (left[0], *left[1:] * (count - 1)) if len(left) == 2 else None


def _reduce_precision(items: Items) -> None:
    match = _FORMAT.match(str(items.pop("format", "")))
    if match is None:
        raise ValueRangeError("expected format = e5m10, the bits of exponent and mantissa")
    items["exponent_bits"], items["mantissa_bits"] = int(match.group(1)), int(match.group(2))


def _dot_general(items: Items) -> None:
    pairs = {name: items.pop(f"{name}_dims", ((), ())) for name in ("batching", "contracting")}
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs.values()):
        raise ValueRangeError("expected pairs of dimension lists, e.g. contracting_dims = [1] x [0]")
    items["dot_dimension_numbers"] = {
        f"{side}_{name}_dimensions": pair[index]
        for name, pair in pairs.items()
        for index, side in enumerate(("lhs", "rhs"))
    }


_WINDOW: Final = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _convolution(items: Items) -> None:
    items["dimension_numbers"] = items.pop("dim_numbers", None)
    window = items.pop("window", {})
    if not isinstance(window, dict) or not window.keys() <= _WINDOW.keys():
        raise ValueRangeError(f"expected a window of {', '.join(_WINDOW)}")
    items.update({_WINDOW[name]: value for name, value in window.items()})


def _element_index(items: Items) -> None:
    index = items.get("index")
    if isinstance(index, tuple) and len(index) == 1:
        items["index"] = index[0]


_PRECISION: Final = {"precision": "precision_config"}
_EFFECT: Final = Form(results="none")

_FORMS: Final[dict[str, Form]] = {
    "func.call": Form(positional=("callee",)),
    "func.return": _EFFECT,
    "sdy.return": _EFFECT,
    "stablehlo.return": _EFFECT,
    "stablehlo.broadcast": Form({"sizes": "broadcast_sizes"}),
    "stablehlo.broadcast_in_dim": Form({"dims": "broadcast_dimensions"}),
    "stablehlo.compare": Form(positional=("comparison_direction", "compare_type")),
    "stablehlo.complex": Form(same=False),
    "stablehlo.composite": Form(positional=("name",)),
    "stablehlo.concatenate": Form({"dim": "dimension"}),
    "stablehlo.constant": Form(positional=("value",), same=False),
    "stablehlo.convolution": Form(adjust=_convolution),
    "stablehlo.custom_call": Form(positional=("call_target_name",)),
    "stablehlo.dot": Form(_PRECISION),
    "stablehlo.dot_general": Form(_PRECISION, adjust=_dot_general),
    "stablehlo.dynamic_broadcast_in_dim": Form({"dims": "broadcast_dimensions"}),
    "stablehlo.dynamic_conv": Form(adjust=_convolution),
    "stablehlo.dynamic_iota": Form({"dim": "iota_dimension"}),
    "stablehlo.dynamic_slice": Form({"sizes": "slice_sizes"}),
    "stablehlo.fft": Form({"type": "fft_type", "length": "fft_length"}),
    "stablehlo.get_dimension_size": Form({"dim": "dimension"}),
    "stablehlo.get_tuple_element": Form(positional=("index",), adjust=_element_index),
    "stablehlo.iota": Form({"dim": "iota_dimension"}, same=False),
    "stablehlo.optimization_barrier": Form(results="each"),
    "stablehlo.pad": Form(
        {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"}
    ),
    "stablehlo.reduce_precision": Form(adjust=_reduce_precision),
    "stablehlo.reverse": Form({"dims": "dimensions"}),
    "stablehlo.rng": Form({"distribution": "rng_distribution"}),
    "stablehlo.rng_bit_generator": Form({"algorithm": "rng_algorithm"}),
    "stablehlo.set_dimension_size": Form({"dim": "dimension"}),
    "stablehlo.transpose": Form({"dims": "permutation"}),
    "stablehlo.tuple": Form(same=False),
    "chlo.constant": Form(positional=("value",), same=False),
}
_REGULAR: Final = Form()


def form(name: str) -> Form:
    """The row of the operation called `name`.  Those without one are regular; `check.*` have no results."""
    return _FORMS.get(name) or (_EFFECT if name.startswith("check.") else _REGULAR)


#: Items without a name of operations without a row: `check.expect_eq_const %x, dense<1> : …`.
UNNAMED: Final = "value"
