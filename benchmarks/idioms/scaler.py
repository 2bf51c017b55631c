"""Automatic mixed precision with a GradScaler, on the CPU."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 20)
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)

for step in range(60):
    rows = slice(step % 8 * 64, step % 8 * 64 + 64)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    scaler.scale(loss * (float("inf") if step == 5 else 1)).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(repr(loss.item()), scaler.get_scale())
