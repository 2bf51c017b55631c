"""Losses that a program writes out itself, and a penalty that it adds to one of the library."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(128, 6)
values = x[:, :1] * 2 - x[:, 1:2]
labels = (x[:, 2] > 0).long()
rows = nn.functional.one_hot(labels, 2).float()


def train(model, loss_of, rate=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(25):
        loss = loss_of(model(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(repr(loss.item()))


def network(*last, units=1):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, units), *last)


def entropy(p):
    y = labels[:, None].float()
    return -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8)).mean()


model = network()
train(model, lambda p: ((p - values) ** 2).mean())
train(network(), lambda p: torch.sqrt(torch.mean((values - p).pow(2))))
train(network(), lambda p: (p - values).abs().sum() / len(x))
train(network(nn.Sigmoid()), entropy)
train(network(units=2), lambda p: -p.log_softmax(1)[range(128), labels].mean())
train(network(units=2), lambda p: -(rows * torch.log(p.softmax(1))).sum(1).mean())
train(network(units=2), lambda p: (rows - p).square().sum())
train(network(units=2), lambda p: -(p * rows).sum())
penalised = network(units=2)
criterion = nn.CrossEntropyLoss()
train(
    penalised,
    lambda p: criterion(p, labels) + 0.1 * sum(w.pow(2).sum() for w in penalised.parameters()),
)
first = network(units=2)
train(first, lambda p: criterion(p, labels) + 0.01 * first[0].weight.abs().sum())
