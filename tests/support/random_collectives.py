"""Random programs of collectives with pauses, the same at all replicas, which must come to their end.

Run by `python -m xarr.distributed`, as a script with the number of programs, it runs them in the world that is there.
"""

from __future__ import annotations

import random
import sys
import time

import numpy as np

from tests.support.collectives import all_gather, all_reduce, rank
from xarr.communication.communicator import current_communicator


def run_program(seed: str, pause: float) -> None:
    """Run collectives of random groups, sends and receives, with pauses of each replica's own."""
    communicator = current_communicator()
    n = communicator.size
    shared, own = random.Random(seed), random.Random(f"{seed} {rank()}")
    for step in range(shared.randrange(1, 8)):
        if own.random() < 0.2:
            time.sleep(own.random() * pause)
        members = shared.sample(range(n), shared.randrange(1, n + 1))
        kind, size = shared.randrange(3), shared.choice((0, 3, 2000, 40_000))
        source, target = shared.sample(range(n), 2) if n > 1 else (0, 0)
        if kind == 2:
            if rank() == source:
                communicator.send(np.full(size, step), target, step % 2)
            if rank() == target:
                communicator.recv(np.empty(size, np.int64), source, step % 2)
        elif rank() in members:
            operand = np.full(size, rank(), np.int64)
            if kind == 0:
                assert (all_reduce(operand, members=members) == sum(members)).all()
            else:
                assert all_gather(operand, members).tolist() == [[each] * size for each in members]


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        run_program(f"{sys.argv[2]} {number}", float(sys.argv[3]))
    print(f"replica {rank()} is done")
