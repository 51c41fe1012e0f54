"""Rows (a) a chain, (b) softmax and layer norm, (c) sums, (d) distances, (l) random numbers, (m) many launches."""

from __future__ import annotations

from typing import Any

from gpu_rows.row import Case, Function, Input, Row, fuse

#: Pairs of operations of the replay, whose sums go along one axis and then along the other.
PAIRS = 250


def chain(dtype: str, size: int) -> Case:
    """Six operations."""

    def by_cupy(cp: Any) -> Function:
        return lambda x: cp.sqrt(cp.maximum(x * 2 + 1, 0) * x + 1)

    return Case(
        lambda xp, lax: by_cupy(xp),
        (Input((size,), dtype),),
        {"cupy": by_cupy, "cupy best": lambda cp: fuse(cp, by_cupy(cp))},
        lambda torch: lambda x: torch.sqrt(torch.clamp(x * 2 + 1, min=0) * x + 1),
        most_bytes=3 * 4 * size,
    )


def softmax(dtype: str, rows: int, columns: int) -> Case:
    def program(xp: Any, lax: Any) -> Function:
        def function(x: Any) -> Any:
            e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
            return e / xp.sum(e, axis=1, keepdims=True)

        return function

    def best(cp: Any) -> Function:
        exponential = fuse(cp, lambda x, most: cp.exp(x - most))

        def function(x: Any) -> Any:
            e = exponential(x, x.max(axis=1, keepdims=True))
            e /= e.sum(axis=1, keepdims=True)
            return e

        return function

    return Case(
        program,
        (Input((rows, columns), dtype),),
        {"cupy": lambda cp: program(cp, None), "cupy best": best},
        lambda torch: lambda x: torch.softmax(x, 1),
        most_bytes=3 * 4 * rows * columns,
    )


def layer_norm(dtype: str, rows: int, columns: int) -> Case:
    def program(xp: Any, lax: Any) -> Function:
        def function(x: Any, scale: Any, offset: Any) -> Any:
            centred = x - xp.mean(x, axis=1, keepdims=True)
            variance = xp.mean(centred * centred, axis=1, keepdims=True)
            return centred / xp.sqrt(variance + 1e-5) * scale + offset

        return function

    def best(cp: Any) -> Function:
        last = fuse(cp, lambda x, m, v, scale, offset: (x - m) / cp.sqrt(v + 1e-5) * scale + offset)

        def function(x: Any, scale: Any, offset: Any) -> Any:
            mean = x.mean(axis=1, keepdims=True)
            return last(x, mean, cp.square(x - mean).mean(axis=1, keepdims=True), scale, offset)

        return function

    vector = Input((columns,), dtype)
    return Case(
        program,
        (Input((rows, columns), dtype), vector, vector),
        {"cupy": lambda cp: program(cp, None), "cupy best": best},
        lambda torch: lambda x, scale, offset: torch.nn.functional.layer_norm(x, (columns,), scale, offset),
        most_bytes=3 * 4 * rows * columns,
    )


def total(axes: Any) -> Any:
    """Sums along axes."""

    def case(dtype: str, *shape: int) -> Case:
        return Case(
            lambda xp, lax: lambda x: xp.sum(x, axis=axes),
            (Input(shape, dtype),),
            {"cupy": lambda cp: lambda x: x.sum(axis=axes)},
            lambda torch: lambda x: torch.sum(x, dim=axes),
        )

    return case


def argmax(dtype: str, rows: int, columns: int) -> Case:
    return Case(
        lambda xp, lax: lambda x: xp.argmax(x, axis=1),
        (Input((rows, columns), dtype),),
        {"cupy": lambda cp: lambda x: x.argmax(axis=1)},
        lambda torch: lambda x: torch.argmax(x, dim=1),
    )


def distances_by_products(dtype: str, points: int, dimensions: int) -> Case:
    """The squared distance of each point to the nearest of the others, by a matrix product."""

    def program(xp: Any, lax: Any) -> Function:
        def function(x: Any, y: Any) -> Any:
            squares = xp.sum(x * x, axis=1)[:, None] + xp.sum(y * y, axis=1)[None, :]
            return xp.min(squares - 2 * (x @ y.T), axis=1)

        return function

    return Case(
        program,
        _points(dtype, points, dimensions),
        {"cupy": lambda cp: program(cp, None)},
        lambda torch: lambda x, y: (torch.cdist(x, y) ** 2).amin(1),
        flops=2 * points * points * dimensions,
        most_bytes=3 * 4 * points * points,
    )


def distances_by_differences(dtype: str, points: int, dimensions: int) -> Case:
    """Those distances without cancellation, which only a compiler can compute without points² × dimensions elements."""

    def by_products(cp: Any) -> Function:
        return distances_by_products(dtype, points, dimensions).by_cupy["cupy"](cp)

    def program(xp: Any, lax: Any) -> Function:
        return lambda x, y: xp.min(xp.sum((x[:, None] - y[None]) ** 2, axis=2), axis=1)

    return Case(
        program,
        _points(dtype, points, dimensions),
        {"cupy": by_products},
        lambda torch: lambda x, y: (torch.cdist(x, y) ** 2).amin(1),
        flops=2 * points * points * dimensions,
        most_bytes=3 * 4 * points * points,
    )


def _points(dtype: str, points: int, dimensions: int) -> tuple[Input, ...]:
    return (Input((points, dimensions), dtype), Input((points, dimensions), dtype))


def random_bits(dtype: str, size: int) -> Case:
    """The bits of threefry, which are JAX's; CuPy's generators are others, so that no results are compared."""

    def bits(module: Any) -> Function:
        random = module.random
        return lambda key: random.bits(random.wrap_key_data(key, impl="threefry2x32"), (size,), "uint32")

    return Case(lambda xp, lax: bits(xp), (Input((2,), "uint32", 2**31),), by_jax=bits)


def small(dtype: str, size: int) -> Case:
    """One operation on few elements: what a call costs."""
    return Case(
        lambda xp, lax: lambda x: x + 1,
        (Input((size,), dtype),),
        {"cupy": lambda cp: lambda x: x + 1},
        lambda torch: lambda x: x + 1,
    )


def replay(dtype: str, side: int, pairs: int) -> Case:
    """Two sums and two sums of arrays a step, along one axis and then the other, so that none joins the next."""

    def by_cupy(cp: Any) -> Function:
        def function(x: Any) -> Any:
            for _ in range(pairs):
                x = x - x.sum(0) * 0.01
                x = x - x.sum(1)[:, None] * 0.01
            return x

        return function

    return Case(
        lambda xp, lax: by_cupy(xp),
        (Input((side, side), dtype),),
        {"cupy": by_cupy},
        by_cupy,
    )


ROWS = (
    Row("a", "chain of 6, 10^5", chain, (10**5,), (1000,), share=None),
    Row("a", "chain of 6, 10^8", chain, (10**8,), (999,), share=0.85),
    Row("b", "softmax 8192×4096", softmax, (8192, 4096), (3, 300), share=0.85),
    Row("b", "softmax 2^20×64", softmax, (2**20, 64), (20, 64), share=0.85),
    Row("b", "layer norm 8192×4096", layer_norm, (8192, 4096), (3, 300), share=0.85),
    Row("b", "layer norm 2^20×64", layer_norm, (2**20, 64), (20, 64), share=0.85),
    Row("c", "sum of 8192×4096, axis 0", total(0), (8192, 4096), (40, 30), kernels=2),
    Row("c", "sum of 8192×4096, axis 1", total(1), (8192, 4096), (3, 300)),
    Row("c", "sum of 64×512×1024, axes 0, 2", total((0, 2)), (64, 512, 1024), (3, 5, 40), kernels=2),
    Row("c", "argmax of 8192×4096, axis 1", argmax, (8192, 4096), (3, 300)),
    Row("d", "distances by products 16384²×64", distances_by_products, (16384, 64), (20, 8), 2),
    Row("d", "distances by differences", distances_by_differences, (16384, 64), (20, 8)),
    Row("l", "threefry 10^8", random_bits, (10**8,), (100,), dtypes=("uint32",)),
    Row("m", "x + 1 of 1000", small, (1000,), (100,)),
    Row("m", "replay of 1000 operations", replay, (64, PAIRS), (16, 2), 4 * PAIRS, tolerance=1e4),
)
