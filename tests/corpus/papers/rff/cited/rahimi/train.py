"""Regression on random Fourier features."""

import argparse

import numpy as np


def lift(inputs, count, sigma, rng):
    weights = rng.normal(0.0, sigma, (inputs.shape[1], count))
    shifts = rng.uniform(0.0, 2 * np.pi, count)
    return np.sqrt(2 / count) * np.cos(inputs @ weights + shifts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    inputs = rng.normal(0.0, 1.0, (500, 5))
    targets = np.sin(inputs).sum(1)
    rows, weights = lift(inputs, args.features, 0.5, rng), np.zeros(args.features)
    for _ in range(args.epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), args.batch_size):
            part = order[start : start + args.batch_size]
            error = rows[part] @ weights - targets[part]
            weights -= args.learning_rate * 2 * rows[part].T @ error / len(part)
    print(f"train RMSE: {np.sqrt(np.mean((rows @ weights - targets) ** 2)):.4f}")


if __name__ == "__main__":
    main()
