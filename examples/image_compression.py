"""Compress a picture by its largest singular values.

    python examples/image_compression.py
    python examples/image_compression.py --size 64 --rank 4 --backend reference

Written for NumPy: only the import says otherwise.
"""

from __future__ import annotations

import argparse

import xarr as np


def picture(size: int):
    """A test picture (size, size): rings, a bright square and a slope, from 0 to 1."""
    y, x = np.mgrid[0:size, 0:size] / size
    rings = 0.5 + 0.5 * np.sin(40 * np.hypot(x - 0.4, y - 0.6))
    image = 0.7 * rings + 0.3 * x
    image[size // 8 : size // 4, size // 2 : -size // 8] = 1.0
    return image


def compress(image, rank: int):
    """The picture of `rank` singular values, and the share of the energy that they hold."""
    u, s, vh = np.linalg.svd(image, full_matrices=False)
    approximation = (u[:, :rank] * s[:rank]) @ vh[:rank]
    return np.clip(approximation, 0.0, 1.0), (s[:rank] ** 2).sum() / (s**2).sum()


def solve(size: int = 48, ranks: tuple[int, ...] = (1, 4, 16)):
    """Errors (ranks,) and shares of energy (ranks,)."""
    image = picture(size)
    errors, shares = [], []
    for rank in ranks:
        approximation, share = compress(image, rank)
        errors.append(np.sqrt(np.mean((approximation - image) ** 2)))
        shares.append(share)
    return np.stack(errors), np.stack(shares)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="the backend of xarr that computes")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--rank", type=int, nargs="+", default=[1, 4, 16, 64])
    arguments = parser.parse_args()
    with np.use_backend(arguments.backend):
        for rank, error, share in zip(arguments.rank, *solve(arguments.size, arguments.rank), strict=True):
            stored = rank * (2 * arguments.size + 1) / arguments.size**2
            print(
                f"rank {rank:3d}: {stored:6.1%} of the numbers, {share:8.3%} of the energy, error {error:.4f}"
            )
