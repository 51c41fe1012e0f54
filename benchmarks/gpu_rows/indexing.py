"""Rows (e) gathers, (f) scatters and a histogram, (g) running totals, (k) sorts."""

from __future__ import annotations

from typing import Any

from gpu_rows.row import Case, Function, Input, Row
from xarr import dtype as dtype_of


def gather(dtype: str, table: int, count: int, width: int) -> Case:
    shape = (table, width) if width > 1 else (table,)
    rows = count * width * dtype_of(dtype).itemsize
    return Case(
        lambda xp, lax: lambda x, i: x.at[i].get(mode="clip"),
        (Input(shape, dtype), Input((count,), "int32", table)),
        {"cupy": lambda cp: lambda x, i: x[i], "cupy best": lambda cp: lambda x, i: cp.take(x, i, axis=0)},
        lambda torch: lambda x, i: torch.index_select(x, 0, i),
        # Each row that is asked for is read, and those that are not are not.
        nbytes=2 * rows + 4 * count,
    )


def gather_with_arithmetic(dtype: str, table: int, count: int, width: int) -> Case:
    plain = gather(dtype, table, count, width)
    return Case(
        lambda xp, lax: lambda x, i: xp.maximum((x * 2).at[i].get(mode="clip") + 1, 0),
        plain.inputs,
        {"cupy": lambda cp: lambda x, i: cp.maximum(x[i] * 2 + 1, 0)},
        lambda torch: lambda x, i: torch.clamp(x[i] * 2 + 1, min=0),
        nbytes=plain.nbytes,
    )


def scatter_add(dtype: str, table: int, count: int, width: int) -> Case:
    shape = (width,) if width > 1 else ()

    def by_cupy(cp: Any) -> Function:
        def function(x: Any, i: Any, updates: Any) -> Any:
            result = x.copy()
            # CuPy's name for it is of a module of its own.
            _cupyx(cp).scatter_add(result, i, updates)
            return result

        return function

    return Case(
        lambda xp, lax: lambda x, i, updates: x.at[i].add(updates, mode="drop"),
        (Input((table, *shape), dtype), Input((count,), "int32", table), Input((count, *shape), dtype)),
        {"cupy": by_cupy},
        lambda torch: lambda x, i, updates: x.index_add(0, i, updates),
    )


def _cupyx(cp: Any) -> Any:
    """The module with scatters beside CuPy, or NumPy's unbuffered sum by their name."""
    if cp.__name__ == "cupy":
        import cupyx

        return cupyx

    class OfNumPy:
        @staticmethod
        def scatter_add(x: Any, i: Any, updates: Any) -> None:
            cp.add.at(x, i, updates)

    return OfNumPy


def histogram(dtype: str, bins: int, count: int) -> Case:
    return Case(
        lambda xp, lax: lambda x: xp.zeros(bins, dtype="int32").at[x].add(1, mode="drop"),
        (Input((count,), dtype, min(bins, 256)),),
        {"cupy": lambda cp: lambda x: cp.bincount(x, minlength=bins).astype("int32")},
        lambda torch: lambda x: torch.bincount(x, minlength=bins),
    )


def running_total(axis: int) -> Any:
    def case(dtype: str, *shape: int) -> Case:
        return Case(
            lambda xp, lax: lambda x: xp.cumsum(x, axis=axis),
            (Input(shape, dtype),),
            {"cupy": lambda cp: lambda x: cp.cumsum(x, axis=axis)},
            lambda torch: lambda x: torch.cumsum(x, dim=axis),
        )

    return case


def sort(dtype: str, *shape: int) -> Case:
    return Case(
        lambda xp, lax: lambda x: xp.sort(x, axis=-1),
        (Input(shape, dtype),),
        {"cupy": lambda cp: lambda x: cp.sort(x, axis=-1)},
        lambda torch: lambda x: torch.sort(x, dim=-1).values,
    )


def sort_by_two_keys(dtype: str, size: int) -> Case:
    def by_cupy(cp: Any) -> Function:
        def function(first: Any, second: Any) -> Any:
            order = cp.lexsort(cp.stack([second.astype(first.dtype), first]))
            return first[order], second[order]

        return function

    return Case(
        lambda xp, lax: lambda first, second: tuple(lax.sort((first, second), dimension=0, num_keys=2)),
        (Input((size,), dtype, 1000), Input((size,), "int32", 2**20)),
        {"cupy": by_cupy},
    )


TABLE, COUNT = 10**6, 10**7
ROWS = (
    *(
        Row("e", f"gather 10^7 rows of {width}", gather, (TABLE, COUNT, width), (40, 100, width), share=0.85)
        for width in (1, 16, 64)
    ),
    Row(
        "e",
        "gather, arithmetic around",
        gather_with_arithmetic,
        (TABLE, COUNT, 16),
        (40, 100, 16),
        share=0.85,
    ),
    *(
        Row(
            "f",
            f"scatter-add 10^7 rows of {width} into {into}, {how}",
            scatter_add,
            (table, COUNT, width),
            (20, 100, width),
            # A copy of what is added to, and the updates; in an order, keys of these and a sort of the keys too.
            2 if how == "atomic" else 4,
            tolerance=1e5,
            deterministic=how != "atomic",
        )
        for width in (1, 16)
        for table, into in ((TABLE, "10^6"), (400, "400"))
        for how in ("atomic", "deterministic")
    ),
    Row("f", "histogram of 10^8", histogram, (256, 10**8), (256, 3000), 2, dtypes=("uint8", "int32")),
    Row("g", "cumsum of 2^28", running_total(0), (2**28,), (700,), 3, tolerance=1e5),
    *(
        Row(
            "g",
            f"cumsum of 8192×32768, axis {axis}",
            running_total(axis),
            (8192, 32768),
            (5, 300),
            tolerance=1e4,
        )
        for axis in (0, 1)
    ),
    Row("k", "sort 10^8", sort, (10**8,), (300,), 8, dtypes=("float32", "int32")),
    Row("k", "sort rows of 8192×4096", sort, (8192, 4096), (3, 40)),
    Row("k", "sort 10^7 by two keys", sort_by_two_keys, (10**7,), (300,), 16, dtypes=("float32",)),
)
