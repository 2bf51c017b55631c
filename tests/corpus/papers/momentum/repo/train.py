"""Trains WarmDigits and prints its test accuracy."""

import argparse

import torch
import yaml
from data import load
from torch import nn


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        return (model(inputs).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with open(args.config) as file:
        config = yaml.safe_load(file)
    torch.manual_seed(args.seed)
    (x, y), (test_x, test_y) = load(args.seed)
    model = nn.Sequential(
        nn.Linear(64, config["hidden"]), nn.Tanh(), nn.Linear(config["hidden"], 10)
    )
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=config["optimizer"]["lr"],
        momentum=0.9,
        weight_decay=config["optimizer"]["weight_decay"],
    )
    steps = config["epochs"] * -(-len(x) // config["batch_size"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss_of = nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=config["batch_size"], shuffle=True
    )
    for epoch in range(config["epochs"]):
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss_of(model(inputs), labels).backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: val acc {evaluate(model, test_x, test_y):.4f}")
    print(f"final test accuracy {evaluate(model, test_x, test_y):.4f}")


if __name__ == "__main__":
    main()
