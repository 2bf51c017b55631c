"""A model kept in bfloat16 and an input pipeline on a stream of its own."""

import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 4)).to(device, torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, foreach=True)
data = torch.randn(30, 64, 32)
labels = data[..., :4].argmax(-1)


class Prefetcher:
    def __init__(self):
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None

    def __iter__(self):
        for x, y in zip(data, labels, strict=True):
            if self.stream is None:
                yield x.bfloat16(), y
                continue
            with torch.cuda.stream(self.stream):
                x = x.pin_memory().to(device, non_blocking=True).bfloat16()
                y = y.pin_memory().to(device, non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            for one in (x, y):
                one.record_stream(torch.cuda.current_stream())
            yield x, y


for _ in range(3):
    for x, y in Prefetcher():
        loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(repr(loss.item()))
