"""Trains RidgeMix on Friedman's first function and prints its test error."""

import argparse
import json

import numpy as np


def friedman(rng, count):
    inputs = rng.uniform(0.0, 1.0, (count, 10))
    targets = (
        10 * np.sin(np.pi * inputs[:, 0] * inputs[:, 1])
        + 20 * (inputs[:, 2] - 0.5) ** 2
        + 10 * inputs[:, 3]
        + 5 * inputs[:, 4]
    )
    return inputs, targets + rng.normal(0.0, 1.0, count)


def features(inputs, count, sigma, rng):
    scales = np.where(np.arange(count) % 2 == 0, sigma, sigma / 4)
    weights = rng.normal(0.0, 1.0, (inputs.shape[1], count)) * scales
    shifts = rng.uniform(0.0, 2 * np.pi, count)
    return lambda rows: np.sqrt(2 / count) * np.cos(rows @ weights + shifts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-size", type=float, default=0.25)
    args = parser.parse_args()
    with open(args.config) as file:
        config = json.load(file)
    rng = np.random.default_rng(args.seed)
    inputs, targets = friedman(rng, 2000)
    held_out = int(len(inputs) * args.test_size)
    train, test = slice(held_out, None), slice(0, held_out)
    mean, std = inputs[train].mean(0), inputs[train].std(0)
    inputs = (inputs - mean) / std
    lift = features(inputs, config["features"], config["sigma"], rng)
    x, y = lift(inputs[train]), targets[train]
    offset = y.mean()
    weights, velocity = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    size = config["batch_size"]
    for epoch in range(config["epochs"]):
        order = rng.permutation(len(x))
        for start in range(0, len(x), size):
            rows = order[start : start + size]
            error = x[rows] @ weights + offset - y[rows]
            gradient = 2 * x[rows].T @ error / len(rows)
            velocity = config["momentum"] * velocity - config["learning_rate"] * gradient
            weights = weights + velocity
        if epoch % 20 == 0:
            print(
                f"epoch {epoch} train RMSE: {np.sqrt(np.mean((x @ weights + offset - y) ** 2)):.4f}"
            )
    rows = lift(inputs[test])
    rmse = np.sqrt(np.mean((rows @ weights + offset - targets[test]) ** 2))
    print(f"test RMSE: {rmse:.4f}")


if __name__ == "__main__":
    main()
