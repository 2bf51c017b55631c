"""Gradients by torch.autograd.grad, with an inner step as in meta-learning."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.rand(32, 1)
    y = torch.sin(6 * x)
    names = dict(model.named_parameters())
    inner = F.mse_loss(model(x), y)
    gradients = torch.autograd.grad(inner, list(names.values()), create_graph=True)
    fast = {
        name: value - 0.01 * g for (name, value), g in zip(names.items(), gradients, strict=True)
    }
    outer = F.mse_loss(torch.func.functional_call(model, fast, (x,)), y)
    meta = torch.autograd.grad(outer, list(names.values()))
    for value, gradient in zip(names.values(), meta, strict=True):
        value.grad = gradient
    optimizer.step()
    print(repr(outer.item()))
