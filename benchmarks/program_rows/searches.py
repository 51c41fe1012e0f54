"""Searches that go back: queens on a board, by a stack of bit masks that branches of one loop change."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_DECIDES, Array, Program, integers


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


ROWS = (
    Program(
        "queens",
        queens_data,
        *(queens_numpy, queens_jax, queens_loops),
        sizes=(5, 8, 10),
        tiny=5,
        untraceable=VALUE_DECIDES,
    ),
)
