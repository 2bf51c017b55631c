"""Automatic mixed precision in float16 with a GradScaler, clipped, a fused AdamW."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
half = torch.float16 if device == "cuda" else torch.bfloat16
x = torch.randn(512, 20, device=device)
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 2)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
scaler = torch.amp.GradScaler(device, init_scale=2.0**40)

for step in range(80):
    rows = slice(step % 8 * 64, step % 8 * 64 + 64)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device, dtype=half):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(repr(loss.item()), scaler.get_scale())
