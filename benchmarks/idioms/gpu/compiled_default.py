"""A model that the default backend compiles."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(256, 16, device=device)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1)).to(device)
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
