"""Follow a moving point through noisy measurements with a Kalman filter.

    python examples/kalman_filter.py
    python examples/kalman_filter.py --steps 20 --backend reference

Written for NumPy: only the import says otherwise.
"""

from __future__ import annotations

import argparse

import xarr as np


def model(dt: float, noise: float):
    """Transition (4, 4), measurement (2, 4) and their covariances, for positions and velocities in a plane."""
    transition = np.eye(4) + dt * np.eye(4, k=2)
    measurement = np.eye(2, 4)
    push = np.kron(np.array([[dt**2 / 2], [dt]]), np.eye(2))
    return transition, measurement, 0.2 * push @ push.T, noise**2 * np.eye(2)


def measure(steps: int, dt: float, noise: float):
    """The true path (steps, 2) and what is measured of it: a disturbance without a generator, the same each time."""
    t = dt * np.arange(steps)
    truth = np.stack([t, 5 * np.sin(0.3 * t)], axis=1)
    disturbance = np.stack(
        [np.sin(37.0 * t + 1) + np.cos(91.0 * t), np.cos(53.0 * t) - np.sin(77.0 * t)], axis=1
    )
    return truth, truth + noise * disturbance


def filter_states(measurements, dt: float, noise: float):
    """The estimated states (steps, 4)."""
    F, H, Q, R = model(dt, noise)
    x, P = np.zeros(4), 10 * np.eye(4)
    states = np.zeros((len(measurements), 4))
    for k in range(len(measurements)):
        x, P = F @ x, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = np.linalg.solve(S, H @ P).T
        x = x + K @ (measurements[k] - H @ x)
        P = (np.eye(4) - K @ H) @ P
        states[k] = x
    return states


def solve(steps: int = 60, dt: float = 0.1, noise: float = 0.5):
    """The states (steps, 4), and the mean errors of the measurements and of the estimate."""
    truth, measurements = measure(steps, dt, noise)
    states = filter_states(measurements, dt, noise)
    before = np.linalg.norm(measurements - truth, axis=1).mean()
    after = np.linalg.norm(states[:, :2] - truth, axis=1).mean()
    return states, before, after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="numpy", help="the backend of xarr that computes")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    with np.use_backend(arguments.backend):
        states, before, after = solve(arguments.steps)
        print(f"mean error: {before:.3f} of the measurements, {after:.3f} of the filter")
        print("last state (x, y, velocities):", np.round(states[-1], 3))
