"""torch.func: gradients of a stateless call under vmap, applied by hand and by an optimiser."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(32, 4), torch.randn(32, 1)


def loss_of(parameters, a, b):
    return nn.functional.mse_loss(functional_call(model, parameters, (a,)), b)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(25):
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    each = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, x, y)
    for name, value in model.named_parameters():
        value.grad = each[name].mean(0)
    optimizer.step()
    print(repr(loss_of(parameters, x, y).item()))
