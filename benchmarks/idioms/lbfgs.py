"""L-BFGS with a closure."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 100).unsqueeze(1)
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(25):
    print(repr(optimizer.step(closure).item()))
