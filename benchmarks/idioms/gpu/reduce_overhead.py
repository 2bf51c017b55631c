"""A compiled model whose kernels are replayed as CUDA graphs."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(256, 16, device=device)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
fast = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01, device=device))

for _ in range(40):
    torch.compiler.cudagraph_mark_step_begin()
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(fast(x), y)
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
