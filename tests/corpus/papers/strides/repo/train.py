"""Trains StrideNet and prints its test accuracy."""

import argparse
import math

import torch
from data import load
from model import StrideNet
from torch import nn


def rate(step, warmup, total):
    """Linear warm-up, then half a cosine."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def evaluate(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (images, labels), test = load(args.seed)
    model = StrideNet()
    model(images[:2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    total = args.epochs * -(-len(images) // args.batch_size)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate(step, args.warmup, total)
    )
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for rows in torch.randperm(len(images)).split(args.batch_size):
            optimizer.zero_grad()
            loss_of(model(images[rows]), labels[rows]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: train accuracy {evaluate(model, images, labels):.4f}")
    print(f"test accuracy: {evaluate(model, *test):.4f}")


if __name__ == "__main__":
    main()
