"""One sample at a time, without a batch dimension, and a model that steps itself."""

import torch
from sklearn.datasets import load_iris
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 3))
        self.optimiser = torch.optim.SGD(self.parameters(), lr=0.05)
        self.loss_fn = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.model(x)

    def train(self, x, y):
        loss = self.loss_fn(self.forward(x), y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.item()


torch.manual_seed(0)
iris = load_iris()
x, y = torch.FloatTensor(iris.data), torch.LongTensor(iris.target)
model = Classifier()
for _ in range(2):
    for a, b in zip(x, y, strict=True):
        print(repr(model.train(a, b)))
