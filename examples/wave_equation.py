"""Waves on a drum: the wave equation in two dimensions by finite differences.

    python examples/wave_equation.py
    python examples/wave_equation.py --size 20 --steps 10 --backend reference

Written for NumPy: only the import says otherwise.
"""

from __future__ import annotations

import argparse

import xarr as np


def laplacian(u):
    """The sum of the four neighbours less four times the middle, within the rim."""
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def energy(u, before, courant: float):
    """Kinetic and elastic energy, in units of the grid."""
    motion = ((u - before) ** 2).sum()
    stretch = (np.diff(u, axis=0) ** 2).sum() + (np.diff(u, axis=1) ** 2).sum()
    return 0.5 * motion + 0.5 * courant**2 * stretch


def solve(size: int = 40, steps: int = 50, courant: float = 0.5):
    """The drum (size, size) after `steps`, and its energy after each."""
    y, x = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
    u = np.exp(-40 * ((x - 0.3) ** 2 + (y + 0.2) ** 2))
    u[x**2 + y**2 >= 1] = 0
    before = u.copy()
    energies = np.zeros(steps)
    for k in range(steps):
        after = 2 * u - before
        after[1:-1, 1:-1] += courant**2 * laplacian(u)
        after[x**2 + y**2 >= 1] = 0
        before, u = u, after
        energies[k] = energy(u, before, courant)
    return u, energies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="the backend of xarr that computes")
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    with np.use_backend(arguments.backend):
        u, energies = solve(arguments.size, arguments.steps)
        print(f"height from {u.min():.3f} to {u.max():.3f} after {arguments.steps} steps")
        print(f"energy {energies[0]:.4f} at first, {energies[-1]:.4f} at last")
