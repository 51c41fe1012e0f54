"""Find clusters of points by k-means.

    python examples/kmeans.py
    python examples/kmeans.py --points 60 --backend reference

Written for NumPy: only the import says otherwise.
"""

from __future__ import annotations

import argparse

import xarr as np


def blobs(points: int, k: int):
    """Points (points, 2) around k centres on a circle; spread without a generator, the same each time."""
    i = np.arange(points)
    angle = 2 * np.pi * (i % k) / k
    spread = 0.5 * np.stack([np.sin(12.9898 * i), np.cos(78.233 * i)], axis=1)
    return np.stack([3 * np.cos(angle), 3 * np.sin(angle)], axis=1) + spread


def kmeans(data, k: int, steps: int = 50):
    """Centres (k, 2) and the label of each point, after `steps` rounds at most."""
    centres = data[:k].copy()
    labels = np.full(len(data), -1)
    for _ in range(steps):
        distances = ((data[:, np.newaxis] - centres) ** 2).sum(axis=-1)
        nearest = distances.argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        for j in range(k):
            members = data[labels == j]
            if len(members):
                centres[j] = members.mean(axis=0)
    return centres, labels


def solve(points: int = 120, k: int = 5):
    """Sorted centres (k, 2), sizes of the clusters (k,) and the spread within them."""
    data = blobs(points, k)
    centres, labels = kmeans(data, k)
    order = np.lexsort((centres[:, 1], centres[:, 0]))
    inertia = ((data - centres[labels]) ** 2).sum()
    return centres[order], np.bincount(labels, minlength=k)[order], inertia


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="the backend of xarr that computes")
    parser.add_argument("--points", type=int, default=5000)
    parser.add_argument("--clusters", type=int, default=5)
    arguments = parser.parse_args()
    with np.use_backend(arguments.backend):
        centres, sizes, inertia = solve(arguments.points, arguments.clusters)
        for centre, size in zip(centres, sizes, strict=True):
            print(f"{int(size):6d} points around ({centre[0]:6.3f}, {centre[1]:6.3f})")
        print(f"inertia {inertia:.3f}")
