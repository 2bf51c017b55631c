"""A loss and a training step written by hand, without an optimiser and then with one."""

import torch

torch.manual_seed(0)
x = torch.randn(100, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
weight = torch.zeros(3, 1, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
for _ in range(10):
    loss = ((x @ weight + bias - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in (weight, bias):
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    print(repr(loss.item()))

optimizer = torch.optim.SGD([weight, bias], lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    loss = (x @ weight + bias - y).abs().mean()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
