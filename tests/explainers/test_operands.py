"""Arguments of `explain_…` that are of a wrong type or number: an error that says what was wanted and got."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.errors import InputError, XarrError

pytestmark = pytest.mark.implicit

NUMBERS: Final = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTERED: Final = lax.ScatterDimensionNumbers((1,), (0,), (0,))
#: Calls that run, to be spoilt one argument at a time.
CALLS: Final[dict[str, dict[str, Any]]] = {
    "explain_matmul": {"a": (2, 3), "b": (3, 4), "op": "matmul", "names": ["a", "b"]},
    "explain_reduce": {"x": (2, 3), "axis": 1, "op": "sum", "keepdims": False, "name": "x"},
    "explain_window": {
        **{
            "x": (6, 6),
            "window": 3,
            "strides": 1,
            "padding": "SAME",
            "base_dilation": 1,
            "window_dilation": 1,
        },
        **{"op": "max", "name": "x"},
    },
    "explain_layout": {"x": (2, 3), "layout": "{0,1}", "name": "x"},
    "explain_index": {"x": (2, 3), "index": 1},
    "explain_gather": {
        **{"operand": (5, 4), "start_indices": (2, 1), "dimension_numbers": NUMBERS, "slice_sizes": (1, 4)},
        **{"index_vector_dim": 1, "indices": [[0], [1]]},
    },
    "explain_scatter": {
        **{"operand": (5, 4), "scatter_indices": (2, 1), "updates": (2, 4), "dimension_numbers": SCATTERED},
        **{"index_vector_dim": 1, "indices": [[0], [1]]},
    },
    "explain_collective": {"name": "all_reduce", "operand": "f32[4]", "n": 4, "pairs": None, "link": None},
}
#: Calls with operands that are no keywords.
OTHERS: Final[dict[str, Callable[..., Any]]] = {
    "explain_broadcast": lambda **keywords: xarr.explain_broadcast((2, 1), (3,), **keywords),
    "explain_einsum": lambda **keywords: xarr.explain_einsum("ij,jk->ik", (2, 3), (3, 4), **keywords),
    "explain_dtype": lambda **keywords: xarr.explain_dtype("int8", "uint8", **keywords),
}
WRONG: Final = (
    *(
        3,
        -1,
        1.5,
        float("nan"),
        None,
        True,
        "no",
        "",
        b"x",
        [],
        {},
        [3],
        ["x"],
        (1, 2, 3),
        [[1], [2, 3]],
        {"a"},
    ),
    *(object(), np.array(1), np.array([1.5]), len, 10**30, [None, None], "\x00"),
)


def spoil(call: Callable[[], Any]) -> str:
    """The text of an error of xarr, or of the explanation that a call returns."""
    try:
        return str(call())
    except XarrError as error:
        return str(error)


@pytest.mark.parametrize("name", CALLS)
def test_every_wrong_argument_is_refused_or_explained(name: str) -> None:
    function = getattr(xarr, name)
    keywords = {key: value for key, value in CALLS[name].items() if key != "link"}
    assert spoil(lambda: function(**keywords)) == str(function(**keywords))
    assert set(CALLS[name]) == set(inspect.signature(function).parameters)
    for key in CALLS[name]:
        for wrong in WRONG:
            assert spoil(partial(function, **{**keywords, key: wrong}))


@pytest.mark.parametrize("name", OTHERS)
def test_every_wrong_keyword_is_refused_or_explained(name: str) -> None:
    parameters = inspect.signature(getattr(xarr, name)).parameters.values()
    for key in (each.name for each in parameters if each.kind is each.KEYWORD_ONLY):
        for wrong in WRONG:
            assert spoil(partial(OTHERS[name], **{key: wrong}))


def test_an_error_of_python_would_be_noticed() -> None:
    with pytest.raises(TypeError):
        spoil(lambda: xarr.explain_reduce((2, 3), wrong=1))


@pytest.mark.parametrize("name", ["explain_reduce", "explain_window", "explain_layout"])
def test_a_name_is_text(name: str) -> None:
    arguments = (3,) if name == "explain_window" else ()
    with pytest.raises(InputError, match=rf'{name}: wanted text such as "x" for name, got 3 of type int'):
        getattr(xarr, name)((4, 4), *arguments, name=3)


@pytest.mark.parametrize("name", [*OTHERS, "explain_matmul"])
def test_names_are_a_list_of_texts_one_for_each_operand(name: str) -> None:
    call = OTHERS.get(name, lambda **keywords: xarr.explain_matmul((2, 3), (3, 4), **keywords))
    wanted = rf'{name}: wanted a list of 2 names such as \["a", "b"\] for names, got 3 of type int'
    with pytest.raises(InputError, match=wanted):
        call(names=3)
    with pytest.raises(InputError, match=rf"{name}: wanted 2 names, one for each operand, got 1"):
        call(names=["x"])
    with pytest.raises(
        InputError, match=rf'{name}: wanted text such as "x" for names\[1\], got 4 of type int'
    ):
        call(names=["x", 4])
    assert "left" in str(call(names=("left", "right")))


def test_flags_and_links() -> None:
    with pytest.raises(InputError, match="explain_reduce: wanted True or False for keepdims, got 'no'"):
        xarr.explain_reduce((2, 3), 1, keepdims="no")
    assert xarr.explain_reduce((2, 3), 1, keepdims=1).keepdims is True
    with pytest.raises(
        InputError, match=r"explain_collective: wanted a Link of xarr.distributed for link, got 3"
    ):
        xarr.explain_collective("all_reduce", "f32[4]", 4, link=3)
    with pytest.raises(InputError, match="explain_broadcast: wanted a symbol or a name for op, got 3"):
        xarr.explain_broadcast((2, 1), (3,), op=3)
