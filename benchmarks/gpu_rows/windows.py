"""Rows (h) pooling, (i) convolutions of ResNet-50, (j) products of matrices, (n) loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_rows.row import Case, Function, Input, Row, fuse

BATCH = 32
WINDOW, STRIDES = (1, 3, 3, 1), (1, 2, 2, 1)
LEAST = -np.inf


def _slices(x: Any) -> list[Any]:
    """The elements of all windows of 3×3 with steps of 2, a window's first in the first array."""
    high, wide = (2 * ((size - 3) // 2) + 1 for size in x.shape[1:3])
    return [x[:, i : i + high : 2, j : j + wide : 2] for i in range(3) for j in range(3)]


def max_pool(dtype: str, *shape: int) -> Case:
    def program(xp: Any, lax: Any) -> Function:
        return lambda x: lax.reduce_window(x, xp.asarray(LEAST, x.dtype), lax.max, WINDOW, STRIDES, "VALID")

    def by_cupy(cp: Any) -> Function:
        def function(x: Any) -> Any:
            first, *others = _slices(x)
            result = first.copy()
            for each in others:
                cp.maximum(result, each, out=result)
            return result

        return function

    def best(cp: Any) -> Function:
        def largest(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> Any:
            most = cp.maximum
            return most(most(most(most(a, b), most(c, d)), most(most(e, f), most(g, h))), i)

        kernel = fuse(cp, largest)
        return lambda x: kernel(*_slices(x))

    def by_torch(torch: Any) -> Function:
        # Channels last, as the others have them.
        pool = torch.nn.functional.max_pool2d
        return lambda x: pool(x.permute(0, 3, 1, 2), 3, 2).permute(0, 2, 3, 1)

    return Case(program, (Input(shape, dtype),), {"cupy": by_cupy, "cupy best": best}, by_torch)


def max_pool_and_relu(dtype: str, *shape: int) -> Case:
    plain = max_pool(dtype, *shape)

    def program(xp: Any, lax: Any) -> Function:
        pool = plain.program(xp, lax)
        return lambda x: xp.maximum(pool(x), 0)

    def by_cupy(cp: Any) -> Function:
        pool = plain.by_cupy["cupy best"](cp)
        return lambda x: cp.maximum(pool(x), 0)

    return Case(program, plain.inputs, {"cupy": by_cupy})


def max_pool_gradient(dtype: str, *shape: int) -> Case:
    batch, height, width, channels = shape
    small = (batch, (height - 3) // 2 + 1, (width - 3) // 2 + 1, channels)

    def program(xp: Any, lax: Any) -> Function:
        zero = xp.zeros((), dtype=dtype)
        return lambda x, g: lax.select_and_scatter(
            x, lax.ge, WINDOW, STRIDES, ((0, 0),) * 4, g, zero, lax.add
        )

    def by_jax(jax: Any) -> Function:
        def pool(x: Any) -> Any:
            return jax.lax.reduce_window(x, LEAST, jax.lax.max, WINDOW, STRIDES, "VALID")

        return lambda x, g: jax.vjp(pool, x)[1](g)[0]

    def by_cupy(cp: Any) -> Function:
        def function(x: Any, gradient: Any) -> Any:
            choice = cp.argmax(cp.stack(_slices(x)), axis=0)
            result = cp.zeros_like(x)
            parts = _slices(result)
            for number, part in enumerate(parts):
                part += cp.where(choice == number, gradient, 0)
            return result

        return function

    def by_torch(torch: Any) -> Function:
        pool = torch.nn.functional.max_pool2d

        def function(x: Any, gradient: Any) -> Any:
            x = x.detach().requires_grad_()
            result = pool(x.permute(0, 3, 1, 2), 3, 2)
            return torch.autograd.grad(result, x, gradient.permute(0, 3, 1, 2))[0]

        return function

    inputs = (Input(shape, dtype), Input(small, dtype))
    return Case(program, inputs, {"cupy": by_cupy}, by_torch, by_jax, most_bytes=9 * inputs[1].nbytes)


def wide_window(dtype: str, side: int, window: int) -> Case:
    """The maximum of each window, of those alone that lie inside."""

    def program(xp: Any, lax: Any) -> Function:
        return lambda x: lax.reduce_window(
            x, xp.asarray(LEAST, x.dtype), lax.max, (window, window), (1, 1), "VALID"
        )

    def by_cupy(cp: Any) -> Function:
        if cp.__name__ == "cupy":
            from cupyx.scipy.ndimage import maximum_filter
        else:
            from scipy.ndimage import maximum_filter
        first, count = window // 2, side - window + 1
        inside = slice(first, first + count)
        return lambda x: maximum_filter(x, size=window)[inside, inside]

    def by_torch(torch: Any) -> Function:
        return lambda x: torch.nn.functional.max_pool2d(x[None], window, 1)[0]

    return Case(program, (Input((side, side), dtype),), {"cupy": by_cupy}, by_torch)


def convolution(window: int, step: int, groups: bool = False) -> Any:
    """Images with channels last; `groups`: each channel by itself."""

    def case(dtype: str, batch: int, side: int, channels: int, filters: int) -> Case:
        kernel = (window, window, 1 if groups else channels, filters)
        pad, count = window // 2, (side - 1) // step + 1

        def program(xp: Any, lax: Any) -> Function:
            options = {
                "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
                "feature_group_count": channels if groups else 1,
            }
            return lambda x, k: lax.conv_general_dilated(
                x, k, (step, step), ((pad, pad), (pad, pad)), **options
            )

        def by_cupy(cp: Any) -> Function:
            def function(x: Any, k: Any) -> Any:
                x = cp.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
                windows = cp.lib.stride_tricks.sliding_window_view(x, (window, window), (1, 2))
                windows = windows[:, ::step, ::step]
                if groups:
                    return (windows * k[:, :, 0].transpose(2, 0, 1)).sum((4, 5)).astype(x.dtype)
                columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, window * window * channels)
                return (columns @ k.reshape(-1, filters)).reshape(batch, count, count, filters)

            return function

        def by_torch(torch: Any) -> Function:
            def function(x: Any, k: Any) -> Any:
                options = {"stride": step, "padding": pad, "groups": channels if groups else 1}
                x, k = x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1)
                return torch.nn.functional.conv2d(x, k, **options).permute(0, 2, 3, 1)

            return function

        terms = window * window * (1 if groups else channels)
        inputs = (Input((batch, side, side, channels), dtype), Input(kernel, dtype))
        columns = batch * count * count * window * window * channels * 4
        flops = 2 * batch * count * count * filters * terms
        return Case(program, inputs, {"cupy": by_cupy}, by_torch, flops=flops, most_bytes=2 * columns)

    return case


def matmul(dtype: str, batch: int, side: int) -> Case:
    shape = (batch, side, side) if batch > 1 else (side, side)
    below = 100 if dtype == "int32" else 0

    def by_cupy(cp: Any) -> Function:
        return lambda x, y: cp.matmul(x, y)

    return Case(
        lambda xp, lax: by_cupy(xp),
        (Input(shape, dtype, below), Input(shape, dtype, below)),
        {"cupy": by_cupy},
        None if below else by_cupy,
        flops=2 * batch * side**3,
    )


def mandelbrot(dtype: str, points: int, limit: int) -> Case:
    """The steps that each point of a line of the plane stays within 2."""

    def step(xp: Any, x: Any, y: Any, a: Any, b: Any, counts: Any) -> tuple[Any, Any, Any]:
        inside = a * a + b * b <= 4
        return (
            xp.where(inside, a * a - b * b + x, a),
            xp.where(inside, a * b + a * b + y, b),
            xp.where(inside, counts + 1, counts),
        )

    def program(xp: Any, lax: Any) -> Function:
        def function(x: Any, y: Any) -> Any:
            start = (xp.zeros_like(x), xp.zeros_like(x), xp.zeros(x.shape, dtype="int32"))
            return lax.fori_loop(0, limit, lambda _, state: step(xp, x, y, *state), start)[2]

        return function

    def loop(how: Any) -> Any:
        def by_cupy(cp: Any) -> Function:
            once = how(cp, lambda x, y, a, b, counts: step(cp, x, y, a, b, counts))

            def function(x: Any, y: Any) -> Any:
                state = (cp.zeros_like(x), cp.zeros_like(x), cp.zeros(x.shape, cp.int32))
                for _ in range(limit):
                    state = once(x, y, *state)
                return state[2]

            return function

        return by_cupy

    plain = loop(lambda cp, function: function)
    spellings = {"cupy": plain, "cupy best": loop(fuse)}
    return Case(program, (Input((points,), dtype), Input((points,), dtype)), spellings, plain_torch(plain))


def plain_torch(spelling: Any) -> Any:
    """PyTorch's own spelling of what CuPy's says: it has the same names but for a conversion of the counts."""

    def by_torch(torch: Any) -> Function:
        class Names:
            zeros_like, where, int32 = torch.zeros_like, torch.where, torch.int32

            @staticmethod
            def zeros(shape: Any, dtype: Any) -> Any:
                return torch.zeros(shape, dtype=dtype, device="cuda")

        function: Function = spelling(Names)
        return function

    return by_torch


def jacobi(dtype: str, side: int, steps: int) -> Case:
    def inner(u: Any) -> Any:
        return (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25

    def program(xp: Any, lax: Any) -> Function:
        return lambda u: lax.fori_loop(0, steps, lambda _, u: u.at[1:-1, 1:-1].set(inner(u)), u)

    def by_cupy(cp: Any) -> Function:
        def function(u: Any) -> Any:
            old, new = u.copy(), u.copy()
            for _ in range(steps):
                new[1:-1, 1:-1] = inner(old)
                old, new = new, old
            return old

        return function

    def by_torch(torch: Any) -> Function:
        def function(u: Any) -> Any:
            old, new = u.clone(), u.clone()
            for _ in range(steps):
                new[1:-1, 1:-1] = inner(old)
                old, new = new, old
            return old

        return function

    return Case(program, (Input((side, side), dtype),), {"cupy": by_cupy}, by_torch)


IMAGES, FEW = (BATCH, 112, 112, 64), (2, 9, 9, 3)
STEPS = 100
ROWS = (
    Row("h", "max pooling 3×3/2", max_pool, IMAGES, FEW, share=0.85),
    Row("h", "max pooling 3×3/2, relu", max_pool_and_relu, IMAGES, FEW, share=0.85),
    Row("h", "its gradient", max_pool_gradient, IMAGES, FEW, share=0.85),
    Row("h", "window 31×31 of 4096²", wide_window, (4096, 31), (20, 5), kernels=2, share=0.85),
    Row("i", "conv 3×3, 64 of 56²", convolution(3, 1), (BATCH, 56, 64, 64), (2, 6, 3, 4), tolerance=1e4),
    Row("i", "conv 1×1, 256 of 56²", convolution(1, 1), (BATCH, 56, 256, 64), (2, 6, 5, 4), tolerance=1e4),
    Row("i", "conv 7×7/2, 3 of 224²", convolution(7, 2), (BATCH, 224, 3, 64), (2, 11, 3, 4), tolerance=1e4),
    Row(
        "i",
        "depthwise 3×3, 64 of 112²",
        convolution(3, 1, groups=True),
        (BATCH, 112, 64, 64),
        (2, 6, 4, 4),
        tolerance=1e4,
    ),
    Row("j", "matmul 4096³", matmul, (1, 4096), (1, 20), tolerance=1e4),
    Row("j", "matmul 1024×64³", matmul, (1024, 64), (3, 8), tolerance=1e4),
    Row("j", "matmul int32 2048³", matmul, (1, 2048), (1, 20), dtypes=("int32",)),
    Row(
        "n",
        "Mandelbrot of 10^6 points, 100 steps",
        mandelbrot,
        (10**6, STEPS),
        (100, 5),
        iterations=STEPS,
        unequal=0.01,
    ),
    Row("n", "Jacobi 4096², 100 steps", jacobi, (4096, STEPS), (12, 5), iterations=STEPS, kernels=STEPS),
)
