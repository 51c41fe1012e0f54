"""No function of the implicit level looks at a value: all of them record on an argument that has none."""

import numpy as np
import pytest

from tests.numpy_api.sorting.test_sorting import COMPARED, INDEX_CALLS
from tests.numpy_api.statistics.test_reductions import EXACT, SUMS
from tests.numpy_api.test_manipulation import MOVES
from tests.support.functions import XP, expression, same, sample
from xarr.ir.types import TensorType
from xarr.runtime import handles, trace_to_graph

OTHERS = [
    "xp.asarray([x, x])",
    "xp.zeros_like(x)",
    "xp.full((2, 3, 4), x)",
    "xp.linspace(x, x + 1, 4)",
    "xp.tril(x)",
    "xp.diag(x)",
    "xp.matmul(x, xp.transpose(x))",
    "xp.tensordot(x, x)",
    "xp.vecdot(x, x)",
    "xp.where(x > 0, x, 1)",
    "xp.allclose(x, x)",
    "xp.astype(x, 'int8')",
    *[pytest.param(text.replace("y", "x[0]"), marks=pytest.mark.implicit) for text in COMPARED],
]


@pytest.mark.parametrize("text", [*MOVES, *INDEX_CALLS, *SUMS, *EXACT, *OTHERS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_recording_needs_no_value(text):
    call, x = expression(text), sample((3, 4), "float64", special=False)
    graph, captured = trace_to_graph.trace(
        lambda array: _flat(call(XP, array)), [TensorType(x.shape, x.dtype)]
    )
    assert not captured
    graph.verify()
    results = graph.inline(XP.asarray(x)._node)
    for node, wanted in zip(results, _flat(call(XP, x)), strict=True):
        same(handles.wrap(node), np.asarray(wanted))


def _flat(result):
    return list(result) if isinstance(result, list | tuple) else [result]
