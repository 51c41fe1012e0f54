"""Random indices of every form that NumPy has, each as NumPy takes it and as xarr is given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

import xarr
from xarr.ir.types import Ints

HostArray = np.ndarray[Any, Any]

SHAPES: Final = st.lists(st.sampled_from([0, 1, 2, 3, 3, 4, 4, 5]), max_size=4).map(tuple)
BOUNDS: Final = st.none() | st.integers(-7, 7) | st.sampled_from([-(10**30), 10**30])
STEPS: Final = st.none() | st.sampled_from([-(10**20), -3, -2, -1, 1, 2, 3, 10**20])
#: Updates of `x.at[i]` that are a ufunc of the old and the new value.
UPDATE_UFUNCS: Final[dict[str, np.ufunc]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
DTYPES: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass
class Index:
    """An index for arrays of `shape`: as NumPy gets it, and as xarr does."""

    shape: Ints
    host: Any
    own: Any

    def __repr__(self) -> str:
        return f"x{list(self.shape)}[{self.host!r}], given as {self.own!r}"


@dataclass
class _Item:
    host: Any
    own: Any
    consumed: int


def count_up(shape: Ints, dtype: str = "int64") -> HostArray:
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


@st.composite
def indices(draw: st.DrawFn, beyond: int = 0, masks: bool = True, lists: bool = True) -> Index:
    """An index for an array of some shape; integers lie up to `beyond` out of bounds, all in bounds for 0."""
    shape = draw(SHAPES)
    batch = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 3]), max_size=2)))
    items: list[_Item] = []
    axis = 0
    dots = draw(st.integers(0, len(shape) + 1))
    while axis < len(shape) and draw(st.integers(0, 4)) != 0:
        if axis == dots:
            skipped = draw(st.integers(0, len(shape) - axis))
            items.append(_Item(Ellipsis, Ellipsis, 0))
            axis += skipped
            rest = shape[axis:]
            items += [draw(_one(size, (size,), batch, beyond, False, lists)) for size in rest]
            axis = len(shape)
            break
        items.append(draw(_one(shape[axis], shape[axis:], batch, beyond, masks, lists)))
        axis += items[-1].consumed
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        items.insert(draw(st.integers(0, len(items))), _Item(None, None, 0))
    if masks and draw(st.integers(0, 9)) == 0:
        flag = draw(st.sampled_from([True, True, False]))
        own = draw(st.sampled_from([flag, np.bool_(flag), np.array(flag), xarr.asarray(flag)]))
        items.insert(draw(st.integers(0, len(items))), _Item(flag, own, 0))
    alone = len(items) == 1 and draw(st.booleans())
    hosts, owns = [item.host for item in items], [item.own for item in items]
    return Index(shape, hosts[0], owns[0]) if alone else Index(shape, tuple(hosts), tuple(owns))


@st.composite
def _one(
    draw: st.DrawFn, size: int, sizes: Ints, batch: Ints, beyond: int, masks: bool, lists: bool
) -> _Item:
    low, high = -size - beyond, size - 1 + beyond
    kinds = ["slice", "slice", "array", "array"] + (["int"] if high >= low else []) + ["mask"] * masks
    kind = draw(st.sampled_from(kinds))
    if kind == "slice":
        part = draw(st.builds(slice, BOUNDS, BOUNDS, STEPS) | st.just(slice(None)))
        return _Item(part, part, 1)
    if kind == "int":
        number = draw(st.integers(low, high))
        own = draw(st.sampled_from([number, np.int16(number), xarr.asarray(number), np.array(number)]))
        return _Item(number, own, 1)
    if kind == "mask":
        return draw(_mask(sizes, batch))
    shape = draw(_fitting(batch))
    if high < low:
        shape = (0,)
    dtype = draw(st.sampled_from(DTYPES))
    if dtype.startswith("u"):
        low = 0
    if high < low:
        shape = (0,)
    count = int(np.prod(shape))
    values = draw(st.lists(st.integers(low, max(low, high)), min_size=count, max_size=count))
    host = np.array(values, dtype).reshape(shape)
    return _Item(host, draw(convert_index(host, lists)), 1)


@st.composite
def _fitting(draw: st.DrawFn, batch: Ints) -> Ints:
    """A shape that broadcasts to `batch`."""
    start = draw(st.integers(0, len(batch)))
    return tuple(draw(st.sampled_from([size, size, 1])) for size in batch[start:])


@st.composite
def _mask(draw: st.DrawFn, sizes: Ints, batch: Ints) -> _Item:
    shape = sizes[: draw(st.integers(1, len(sizes)))]
    count = int(np.prod(shape))
    wanted = draw(st.sampled_from([(batch or (1,))[-1], 1])) if draw(st.booleans()) else None
    if wanted is not None and wanted <= count:
        host = np.zeros(count, bool)
        host[draw(st.permutations(range(count)))[:wanted]] = True
    else:
        host = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    host = host.reshape(shape)
    return _Item(host, draw(convert_index(host, host.size > 0)), len(shape))


@st.composite
def convert_index(draw: st.DrawFn, host: HostArray, lists: bool = True) -> Any:
    """An index array in one of the forms that xarr takes."""
    form = draw(st.sampled_from(["numpy", "array", "lazy"] + ["list"] * (lists and host.size > 0)))
    if form == "list":
        return host.tolist()
    if form == "numpy":
        return host
    if form == "array" or not host.size:
        return xarr.asarray(host)
    return ~~xarr.asarray(host) if host.dtype == bool else xarr.asarray(host) + 0


@st.composite
def values_for(draw: st.DrawFn, shape: Ints, dtype: str = "int64") -> HostArray:
    """A value that broadcasts to `shape`, perhaps with dimensions of size 1 too many, and no two elements equal."""
    start = draw(st.integers(0, len(shape)))
    sizes = tuple(draw(st.sampled_from([size, size, 1])) for size in shape[start:])
    extra = (1,) * draw(st.sampled_from([0, 0, 1])) if start == 0 and shape else ()
    return -count_up(extra + sizes, dtype)
