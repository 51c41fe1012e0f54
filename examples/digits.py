"""Classify handwritten digits with one broadcast: the k nearest neighbours of scikit-learn's digits.

    python examples/digits.py
    python examples/digits.py --backend reference --train 60 --test 10

Every picture is a row of 64 grey values.  `(n,1,64) - (1,m,64)` subtracts each of m known pictures
from each of n new ones; the sum of squares over the last axis is a table of n x m distances.  The
labels of the k nearest vote.  The program prints how the broadcast works and the accuracy, and writes two
pictures: some digits with the labels they were given, and beside that file the broadcast.
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

BATCH = 32
"""New pictures compared at a time: with 1,347 known ones the differences take 21 MB."""


def distances(queries: xarr.Array, train: xarr.Array) -> xarr.Array:
    """Squared distances (n, m) between n pictures (n, 64) and m pictures (m, 64)."""
    difference = queries[:, None, :] - train[None, :, :]
    return (difference * difference).sum(axis=2)


def classify(queries: xarr.Array, train: xarr.Array, labels: xarr.Array, k: int) -> xarr.Array:
    """The label (n,) that most of the k nearest pictures have; the smaller label where votes tie."""
    table = distances(queries, train)
    beside = xarr.broadcast_to(labels, table.shape)
    _, ranked = lax.sort_key_val(table, beside, dimension=1)
    votes = (ranked[:, :k, None] == xarr.arange(10)).sum(axis=1)
    return votes.argmax(axis=1)


def load(train: int, test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Known pictures and labels, new pictures and labels, drawn in a fixed shuffled order."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    known, new = order[:train], order[train : train + test]
    pictures = digits.data.astype(np.float32)
    return pictures[known], digits.target[known], pictures[new], digits.target[new]


def draw(pictures: np.ndarray, predicted: np.ndarray, truth: np.ndarray, path: Path) -> None:
    """Write some pictures with their predicted labels, mistakes first and in vermilion."""
    order = np.argsort(predicted == truth, kind="stable")[:24]
    figure, axes = plt.subplots(3, 8, figsize=(8, 3.9), layout="constrained")
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, i in zip(axes.flat, order, strict=False):
        right = predicted[i] == truth[i]
        axis.imshow(pictures[i].reshape(8, 8), cmap="gray_r")
        title = f"{predicted[i]}" if right else f"{predicted[i]}, is {truth[i]}"
        axis.set_title(title, color="black" if right else "#D55E00", fontsize=11)
    figure.suptitle("Predicted labels; mistakes first")
    figure.savefig(path, dpi=120)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="numpy", help="numpy (default), reference, …")
    parser.add_argument("--train", type=int, default=1347, help="number of known pictures (default 1347)")
    parser.add_argument("--test", type=int, default=450, help="number of new pictures (default 450)")
    parser.add_argument("--k", type=int, default=3, help="neighbours that vote (default 3)")
    parser.add_argument("--output", type=Path, default=Path("digits.png"), help="picture to write")
    options = parser.parse_args()
    if not (options.train >= options.k >= 1 and options.test >= 1 and options.train + options.test <= 1797):
        parser.error("wanted 1 <= k <= train, 1 <= test and train + test <= 1797")
    return options


def main() -> int:
    options = arguments()
    try:
        run(options)
    except xarr.errors.BackendError as error:
        print(f"digits: {error}", file=sys.stderr)
    except OSError as error:
        print(f"digits: cannot write {options.output}: {error.strerror}", file=sys.stderr)
    else:
        return 0
    return 2


def run(options: argparse.Namespace) -> None:
    """Classify, print the accuracy and write the picture."""
    xarr.set_backend(options.backend)
    known, known_labels, new, truth = load(options.train, options.test)
    train, labels = xarr.asarray(known), xarr.asarray(known_labels)

    queries, pictures = xarr.asarray(new[:BATCH])[:, None, :], train[None, :, :]
    explanation = xarr.explain(lambda: queries - pictures)
    print(explanation)
    print()

    predicted = np.empty_like(truth)
    for start in tqdm(range(0, len(new), BATCH), desc=f"classifying on {options.backend}", unit="batch"):
        batch = xarr.asarray(new[start : start + BATCH])
        predicted[start : start + BATCH] = np.asarray(classify(batch, train, labels, options.k))

    right = int((predicted == truth).sum())
    print(f"accuracy {right / len(truth):.1%}: {right} of {len(truth)} digits, {options.train} known ones")
    draw(new, predicted, truth, options.output)
    broadcast = options.output.with_name(f"{options.output.stem}_broadcast.svg")
    broadcast.write_text(explanation.svg(), encoding="utf-8")
    print(f"wrote {options.output} and {broadcast}")


if __name__ == "__main__":
    sys.exit(main())
