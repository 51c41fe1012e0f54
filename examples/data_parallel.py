"""Train logistic regression on handwritten digits over four replicas, to the same bits as on one.

    python examples/data_parallel.py
    mpiexec -n 4 python -m xarr.distributed examples/data_parallel.py

Each replica has a quarter of the pictures, and in each step computes the gradient of its own.  `lax.psum` adds the
four, from the first to the last, and every replica takes the same step.  One replica that computes the four gradients
one after the other, and adds them in this order, gets the same bits: the program does both, and says so.  It writes a
picture of the weights of the ten digits, and of the loss.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # write a file, open no window

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from tqdm import tqdm

import xarr
from xarr import lax
from xarr.distributed import NamedSharding, PartitionSpec, device_put, make_mesh

AXIS = "data"
Weights = tuple[xarr.Array, xarr.Array]


def gradient(weights: Weights, pictures: xarr.Array, labels: xarr.Array) -> tuple[Weights, xarr.Array]:
    """The gradient of the loss, summed over pictures (n, 64) with labels (n, 10) of zeros and ones, and the loss."""
    matrix, bias = weights
    scores = pictures @ matrix + bias[None, :]
    scores = scores - scores.max(axis=1, keepdims=True)
    total = xarr.log(xarr.exp(scores).sum(axis=1, keepdims=True))
    errors = xarr.exp(scores - total) - labels
    loss = ((total - scores) * labels).sum()
    return (pictures.T @ errors, errors.sum(axis=0)), loss


def move(weights: Weights, slope: Weights, rate: float) -> Weights:
    """The weights after a step against the gradient."""
    return weights[0] - rate * slope[0], weights[1] - rate * slope[1]


def load(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures of mean 0, their labels as rows of zeros and a one, and as numbers."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))[:count]
    pictures = (digits.data[order] / 16 - 0.5).astype(np.float32)
    return pictures, np.eye(10, dtype=np.float32)[digits.target[order]], digits.target[order]


def train_on_replicas(
    pictures: np.ndarray, labels: np.ndarray, replicas: int, steps: int, rate: float
) -> tuple[list[np.ndarray], list[float]]:
    """The weights after so many steps, and the mean loss before each."""
    mesh, count = make_mesh(replicas, AXIS), len(pictures)
    whole, split = PartitionSpec(), PartitionSpec(AXIS)

    @xarr.shard_map(mesh=mesh, in_specs=(whole, split, split), out_specs=(whole, whole))
    def step(weights: Weights, x: xarr.Array, y: xarr.Array) -> tuple[Weights, xarr.Array]:
        slope, loss = lax.psum(gradient(weights, x, y), AXIS)
        return move(weights, slope, rate / count), loss / count

    x, y = (device_put(each, NamedSharding(mesh, split)) for each in (pictures, labels))
    weights = tuple(device_put(each, NamedSharding(mesh, whole)) for each in start())
    losses = []
    quiet = int(lax.replica_id()) > 0
    for _ in tqdm(range(steps), f"training on {replicas} replicas", file=sys.stderr, disable=quiet):
        weights, loss = step(weights, x, y)
        losses.append(float(np.asarray(loss)))
    return [np.asarray(each) for each in weights], losses


def train_on_one(
    pictures: np.ndarray, labels: np.ndarray, parts: int, steps: int, rate: float
) -> list[np.ndarray]:
    """The weights by one replica, which adds the gradients of the parts from the first to the last."""
    own, count = xarr.jit(gradient), len(pictures)
    weights = tuple(xarr.asarray(each) for each in start())
    pairs = list(zip(np.split(pictures, parts), np.split(labels, parts), strict=True))
    advance = xarr.jit(lambda weights, slope: move(weights, slope, rate / count))
    for _ in range(steps):
        slopes = [own(weights, *pair)[0] for pair in pairs]
        total = slopes[0]
        for slope in slopes[1:]:
            total = tuple(a + b for a, b in zip(total, slope, strict=True))
        weights = advance(weights, total)
    return [np.asarray(each) for each in weights]


def start() -> tuple[np.ndarray, np.ndarray]:
    """The weights before the first step."""
    return np.zeros((64, 10), np.float32), np.zeros(10, np.float32)


def draw(matrix: np.ndarray, losses: list[float], path: Path) -> None:
    """Write a picture: for each digit which pixels speak for it and against it, and the loss by step."""
    figure, axes = plt.subplots(2, 6, figsize=(8, 3.4), layout="constrained")
    limit = float(np.abs(matrix).max()) or 1.0
    for digit, axis in enumerate([*axes[0, :5], *axes[1, :5]]):
        axis.imshow(matrix[:, digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set_title(str(digit), fontsize=11)
        axis.set_axis_off()
    axes[0, 5].plot(losses, color="#0072B2")
    axes[0, 5].set_title("loss by step", fontsize=9)
    axes[1, 5].set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--replicas", type=int, default=4, help="number of replicas (default 4)")
    parser.add_argument("--count", type=int, default=1796, help="number of pictures (default 1796)")
    parser.add_argument("--steps", type=int, default=300, help="number of steps (default 300)")
    parser.add_argument("--rate", type=float, default=0.5, help="how far a step goes (default 0.5)")
    parser.add_argument("--output", type=Path, default=Path("data_parallel.png"), help="picture to write")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    count = options.count // options.replicas * options.replicas
    pictures, labels, truth = load(count)
    weights, losses = train_on_replicas(pictures, labels, options.replicas, options.steps, options.rate)
    alone = train_on_one(pictures, labels, options.replicas, options.steps, options.rate)
    same = all(a.tobytes() == b.tobytes() for a, b in zip(weights, alone, strict=True))
    right = int(((pictures @ weights[0] + weights[1]).argmax(axis=1) == truth).sum())
    if int(lax.replica_id()) == 0:
        print(
            f"accuracy {right / count:.1%}: {right} of {count} digits, loss {losses[0]:.3f} -> {losses[-1]:.3f}"
        )
        print(
            f"weights of {options.replicas} replicas and of one: {'the same bits' if same else 'OTHER BITS'}"
        )
        draw(weights[0], losses, options.output)
        print(f"wrote {options.output}")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
