"""Conway's Game of Life on boolean masks.

    python examples/game_of_life.py
    python examples/game_of_life.py --size 16 --steps 5 --backend reference

Written for NumPy: only the import says otherwise.
"""

from __future__ import annotations

import argparse

import xarr as np

GLIDER = [[False, True, False], [False, False, True], [True, True, True]]
ACORN = [
    [False, True, False, False, False, False, False],
    [False, False, False, True, False, False, False],
    [True, True, False, False, True, True, True],
]


def board(size: int):
    """A glider in the corner and an acorn in the middle of a board (size, size) that wraps around."""
    cells = np.zeros((size, size), dtype=bool)
    cells[1:4, 1:4] = GLIDER
    middle = size // 2
    cells[middle : middle + 3, middle - 3 : middle + 4] = ACORN
    return cells


def step(cells):
    """The next generation."""
    near = sum(
        np.roll(cells, (i, j), axis=(0, 1)).astype(np.int8)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    )
    after = cells.copy()
    after[cells & ((near < 2) | (near > 3))] = False
    after[~cells & (near == 3)] = True
    return after


def solve(size: int = 32, steps: int = 30):
    """The board at the end, the living cells' positions (n, 2), and how many lived in each generation."""
    cells = board(size)
    alive = np.zeros(steps, dtype=np.int64)
    for k in range(steps):
        cells = step(cells)
        alive[k] = np.count_nonzero(cells)
    return cells, np.argwhere(cells), alive


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="the backend of xarr that computes")
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    with np.use_backend(arguments.backend):
        cells, positions, alive = solve(arguments.size, arguments.steps)
        for row in cells.tolist():
            print("".join("# " if cell else ". " for cell in row))
        print(f"{len(positions)} cells live after {arguments.steps} generations, {int(alive.max())} at most")
