"""A model that fills most of the GPU: what the probe copies must find room."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
free = torch.cuda.mem_get_info()[0] if device == "cuda" else 64 << 20
width = int((free * 0.22 / 4 / 4) ** 0.5) // 64 * 64
model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
x = torch.randn(32, width, device=device)

for _ in range(6):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
