"""The calls of `numpy_surface.py`: what each name that xarr shares with NumPy is timed on.

`surface_calls.txt` has the expressions; their variables are the arrays of `arrays`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

SIZE: Final = 1_000_000


def arrays() -> dict[str, np.ndarray]:
    """The operands by name: of 10^6 elements, but square matrices of 500 rows and batches of 10^4 small ones."""
    random = np.random.default_rng(0)
    v, w = random.normal(size=SIZE), random.normal(size=SIZE)
    p, q = random.uniform(0.01, 0.99, SIZE), random.uniform(0.01, 0.99, SIZE)
    i, j = random.integers(0, 1000, SIZE), random.integers(1, 1000, SIZE)
    square, other = random.normal(size=(500, 500)), random.normal(size=(500, 500))
    batch = random.normal(size=(10_000, 4, 4))
    with_nan = np.where(p < 0.02, np.nan, v)
    return {
        "v": v,
        "w": w,
        "f": v.astype(np.float32),
        "p": p,
        "q": q,
        "i": i,
        "j": j,
        "few": random.integers(0, 30, SIZE),
        "b": v > 0,
        "d": w > 0,
        "c": v + 1j * w,
        "y": i.astype(np.uint8),
        "s": np.sort(v),
        "nan": with_nan,
        "nans": with_nan.reshape(1000, 1000),
        "k": random.integers(0, SIZE, SIZE),
        "m": v.reshape(1000, 1000).copy(),
        "r": random.integers(0, 1000, (1000, 1000)),
        "mask": random.normal(size=(1000, 1000)) > 0,
        "t": w.reshape(100, 100, 100).copy(),
        "three": random.normal(size=(300_000, 3)),
        "trio": random.normal(size=(300_000, 3)),
        "a": square,
        "e": other,
        "sym": square + square.T,
        "pos": square @ square.T + 500 * np.eye(500),
        "col": random.normal(size=500),
        "tall": random.normal(size=(1000, 200)),
        "right": random.normal(size=1000),
        "g": batch,
        "gsym": batch + batch.swapaxes(1, 2),
        "gpos": batch @ batch.swapaxes(1, 2) + np.eye(4),
        "grow": random.normal(size=(10_000, 4)),
        "odd": random.normal(size=(100, 9973)),
        "long": random.normal(size=2**20),
        "matrices": random.normal(size=(1000, 30, 30)),
        "small": random.normal(size=(200, 200)),
        "one": random.normal(size=100),
        "kernel": random.normal(size=50),
    }


_ABOUT_TYPES: Final = (
    "common_type isscalar issubdtype iterable min_scalar_type mintypecode ndim shape size iscomplexobj isrealobj "
    "broadcast_shapes can_cast finfo iinfo isdtype promote_types result_type ndarray.dtype ndarray.itemsize "
    "ndarray.nbytes ndarray.ndim ndarray.shape ndarray.size ndarray.item ndarray.to_device"
)
_BY_NUMPY: Final = (
    "genfromtxt load loadtxt save savetxt savez savez_compressed fromfile fromstring frombuffer fromiter "
    "from_dlpack array2string array_repr array_str base_repr binary_repr"
)
_WRITING: Final = "copyto ndarray.fill ndarray.put ndarray.sort"
#: Names without a row, and why.
NOT_TIMED: Final[dict[str, str]] = {
    **dict.fromkeys(_ABOUT_TYPES.split(), "says something about types or shapes, and reads no element"),
    **dict.fromkeys(_BY_NUMPY.split(), "NumPy reads, writes or shows the values in both"),
    **dict.fromkeys(_WRITING.split(), "changes its operand, another one at each call"),
    **dict.fromkeys(("broadcast", "ndenumerate", "nditer"), "a loop of Python's over elements"),
}


def name_of(line: str) -> str:
    """`linalg.solve`, `ndarray.sum`, or "" where neither a function nor a method is called."""
    if match := re.match(r"xp\.([\w.]+)", line):
        return match[1]
    method = re.match(r"(?:[a-z]|few|\(few % 3\))\.(\w+)", line)
    return f"ndarray.{method[1]}" if method else ""


def lines() -> dict[str, list[str]]:
    """The expressions of each family."""
    families: dict[str, list[str]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            families[line.strip("[]")] = own = []
        elif line and not line.startswith("#"):
            own.append(line)
    return families


def scope(module: Any, operands: dict[str, Any]) -> dict[str, Any]:
    """The names for an expression, with the operands as arrays of `module`."""
    constants = {"lists": [[0.5] * 100 for _ in range(1000)], "numbers": list(range(100_000))}
    return {
        "xp": module,
        "np": np,
        "rng": np.random.default_rng(0),
        "key": np.array([0, 42], np.uint32),
        **constants,
        **operands,
    }
