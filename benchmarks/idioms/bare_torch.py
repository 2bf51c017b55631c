"""PyTorch: tensors that no module holds, and a loss that is written out."""

import torch

torch.manual_seed(0)
x = torch.randn(128, 5)
y = x.sum(1)
weights = torch.randn(5, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weights, bias], lr=1e-2)

for _ in range(30):
    loss = ((x @ weights + bias - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
