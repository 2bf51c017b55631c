"""A compiled model with a compiled step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 16)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
fast = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


@torch.compile(backend="eager")
def loss_of(prediction, target):
    return nn.functional.mse_loss(prediction, target)


for _ in range(40):
    optimizer.zero_grad()
    loss = loss_of(fast(x), y)
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
