"""Trains a small network on scikit-learn's digits and prints its test accuracy."""

import argparse

import torch
from data import load
from torch import nn


def build(width, dropout):
    return nn.Sequential(
        nn.Linear(64, width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (x, y), (test_x, test_y) = load(args.seed)
    model = build(args.width, args.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_of = nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=args.batch_size, shuffle=True
    )
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss_of(model(inputs), labels).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"test accuracy: {100 * accuracy:.2f} %")


if __name__ == "__main__":
    main()
