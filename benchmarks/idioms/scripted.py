"""A model and its loss in TorchScript, and one traced by torch.fx."""

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)


class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.criterion(torch.relu(self.linear(x)), y)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)

    def forward(self, x):
        return nn.functional.softplus(self.linear(x))


x, y = torch.randn(48, 5), torch.randint(0, 3, (48,))
model = torch.jit.script(Scored())
traced = torch.fx.symbolic_trace(Plain())
parameters = [*model.parameters(), *traced.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss = model(x, y) + nn.functional.cross_entropy(traced(x), y)
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
