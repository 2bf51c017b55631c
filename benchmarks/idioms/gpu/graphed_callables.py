"""Parts of a model that CUDA records, called from an ordinary loop."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
body = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()).to(device)
head = nn.Linear(64, 1).to(device)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
x = torch.randn(64, 16, device=device)
y = x.sum(1, keepdim=True)
if device == "cuda":
    body = torch.cuda.make_graphed_callables(body, (torch.randn_like(x),))

for _ in range(40):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(head(body(x)), y)
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
