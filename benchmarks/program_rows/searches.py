"""Searches that go back: queens on a board, by a stack of bit masks; rays through a tree of boxes, a stack for each."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_DECIDES, Array, Program, integers, uniform


def queens_data(n: int) -> tuple[np.ndarray | int, ...]:
    """The squares of each row that may be used: all but one."""
    return (1 << n) - 1 - (1 << integers(n, n)), n


def queens_numpy(xp: Array, allowed: Array, n: int) -> Array:
    """The number of ways to set a queen in each row; NumPy has nothing for it but Python's numbers."""
    rows = allowed.tolist()
    columns, falling, rising, free = ([0] * n for _ in range(4))
    free[0] = rows[0]
    row = count = 0
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        bit = free[row] & -free[row]
        free[row] ^= bit
        if row == n - 1:
            count += 1
            continue
        columns[row + 1] = columns[row] | bit
        falling[row + 1] = (falling[row] | bit) << 1
        rising[row + 1] = (rising[row] | bit) >> 1
        row += 1
        free[row] = rows[row] & ~(columns[row] | falling[row] | rising[row])
    return xp.asarray(count)


def queens_jax(jnp: Array, lax: Array, allowed: Array, n: int) -> Array:
    def step(state: Array) -> Array:
        row, count, columns, falling, rising, free = state
        bit = free[row] & -free[row]

        def go_back() -> Array:
            return row - 1, count, columns, falling, rising, free

        def set_queen() -> Array:
            left = free.at[row].set(free[row] ^ bit)

            def go_on() -> Array:
                a, b, c = columns[row] | bit, (falling[row] | bit) << 1, (rising[row] | bit) >> 1
                new = allowed[row + 1] & ~(a | b | c)
                stacks = columns.at[row + 1].set(a), falling.at[row + 1].set(b), rising.at[row + 1].set(c)
                return row + 1, count, *stacks, left.at[row + 1].set(new)

            return lax.cond(row == n - 1, lambda: (row, count + 1, columns, falling, rising, left), go_on)

        return lax.cond(bit == 0, go_back, set_queen)

    zeros = jnp.zeros(n, dtype="int64")
    start = (zeros[0], zeros[0], zeros, zeros, zeros, zeros.at[0].set(allowed[0]))
    return lax.while_loop(lambda state: state[0] >= 0, step, start)[1]


def queens_loops(allowed: Array, n: int) -> Array:
    columns, falling = np.zeros(n, np.int64), np.zeros(n, np.int64)
    rising, free = np.zeros(n, np.int64), np.zeros(n, np.int64)
    free[0] = allowed[0]
    row = count = 0
    while row >= 0:
        if free[row] == 0:
            row -= 1
            continue
        bit = free[row] & -free[row]
        free[row] ^= bit
        if row == n - 1:
            count += 1
            continue
        columns[row + 1] = columns[row] | bit
        falling[row + 1] = (falling[row] | bit) << 1
        rising[row + 1] = (rising[row] | bit) >> 1
        row += 1
        free[row] = allowed[row] & ~(columns[row] | falling[row] | rising[row])
    return np.array(count)


# --- rays through a tree of boxes, which all go on until the last is done -----------------------------------------

#: The leaves of the tree, and the boxes that a ray may still have to look into.
LEAVES = 64
STACK = 8


def rays_data(n: int) -> tuple[np.ndarray, ...]:
    """The corners of the boxes, those inside of box k being 2 k and 2 k + 1; where the rays begin, and where to."""
    low = uniform(LEAVES, 2) * 10
    low = low[np.argsort(low[:, 0])]
    boxes = np.zeros((2 * LEAVES, 4))
    boxes[LEAVES:] = np.concatenate([low, low + 0.6], axis=1)
    for k in range(LEAVES - 1, 0, -1):
        inside = boxes[2 * k : 2 * k + 2]
        boxes[k] = [*inside[:, :2].min(axis=0), *inside[:, 2:].max(axis=0)]
    angle = uniform(n, seed=3) - 0.5
    start = np.stack([np.full(n, -1.0), 10 * uniform(n, seed=2)], axis=1)
    return boxes, start, np.stack([np.cos(angle), np.sin(angle)], axis=1)


def meet_boxes(xp: Array, ends: Array, goes_on: Array, nearest: Array, is_leaf: Array) -> Array:
    """The nearest leaves by now, and which rays enter their box, whose two corners are `ends` of them away."""
    near, far = xp.minimum(*ends).max(axis=1), xp.maximum(*ends).min(axis=1)
    meets = goes_on & (near <= far) & (near < nearest) & (far > 0)
    return xp.where(meets & is_leaf, xp.maximum(near, 0), nearest), meets & ~is_leaf


def rays_numpy(xp: Array, boxes: Array, start: Array, way: Array) -> Array:
    """The distance at which each ray meets the nearest leaf."""
    n = start.shape[0]
    nearest = xp.full(n, xp.inf)
    stack = xp.zeros((n, STACK), dtype="int64")
    stack[:, 0] = 1
    left = xp.ones(n, dtype="int64")
    rays = xp.arange(n)
    while (left > 0).any():
        goes_on = left > 0
        left = left - goes_on
        box = xp.where(goes_on, stack[rays, left], 0)
        ends = (boxes[box, :2] - start) / way, (boxes[box, 2:] - start) / way
        nearest, enters = meet_boxes(xp, ends, goes_on, nearest, box >= LEAVES)
        stack[rays, left] = xp.where(enters, 2 * box + 1, stack[rays, left])
        stack[rays, left + 1] = xp.where(enters, 2 * box, stack[rays, left + 1])
        left = left + 2 * enters
    return nearest


def rays_jax(jnp: Array, lax: Array, boxes: Array, start: Array, way: Array) -> Array:
    n = start.shape[0]
    rays = jnp.arange(n)

    def step(state: Array) -> Array:
        nearest, stack, left = state
        goes_on = left > 0
        left = left - goes_on
        box = jnp.where(goes_on, stack[rays, left], 0)
        ends = (boxes[box, :2] - start) / way, (boxes[box, 2:] - start) / way
        nearest, enters = meet_boxes(jnp, ends, goes_on, nearest, box >= LEAVES)
        stack = stack.at[rays, left].set(jnp.where(enters, 2 * box + 1, stack[rays, left]))
        stack = stack.at[rays, left + 1].set(jnp.where(enters, 2 * box, stack[rays, left + 1]))
        return nearest, stack, left + 2 * enters

    stack = jnp.zeros((n, STACK), dtype="int64").at[:, 0].set(1)
    first = jnp.full(n, jnp.inf), stack, jnp.ones(n, dtype="int64")
    return lax.while_loop(lambda state: (state[2] > 0).any(), step, first)[0]


def rays_loops(boxes: Array, start: Array, way: Array) -> Array:
    n = start.shape[0]
    nearest = np.full(n, np.inf)
    stack = np.zeros(STACK, np.int64)
    for ray in range(n):
        stack[0] = left = 1
        while left > 0:
            left -= 1
            box = stack[left]
            near, far = -np.inf, np.inf
            for axis in range(2):
                a = (boxes[box, axis] - start[ray, axis]) / way[ray, axis]
                b = (boxes[box, axis + 2] - start[ray, axis]) / way[ray, axis]
                near, far = max(near, min(a, b)), min(far, max(a, b))
            if near <= far and near < nearest[ray] and far > 0:
                if box >= LEAVES:
                    nearest[ray] = max(near, 0.0)
                else:
                    stack[left], stack[left + 1] = 2 * box + 1, 2 * box
                    left += 2
    return nearest


ROWS = (
    Program(
        "queens",
        queens_data,
        *(queens_numpy, queens_jax, queens_loops),
        sizes=(5, 8, 10),
        tiny=5,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "rays through a tree",
        rays_data,
        *(rays_numpy, rays_jax, rays_loops),
        sizes=(16, 1000, 30_000),
        tiny=6,
        untraceable=VALUE_DECIDES,
    ),
)
