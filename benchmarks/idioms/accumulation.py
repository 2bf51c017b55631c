"""Gradients accumulated over four batches, with a warm-up schedule."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(640, 12), torch.randint(0, 3, (640,))
model = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.LayerNorm(24), nn.Linear(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10))
accumulate = 4

for epoch in range(5):
    for i, (a, b) in enumerate(zip(x.split(32), y.split(32), strict=True)):
        loss = nn.functional.cross_entropy(model(a), b) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            print(epoch, repr(loss.item() * accumulate))
