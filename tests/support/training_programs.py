"""Programs that train."""

FAULTY = """\
import torch
from torch import nn

x = torch.randn(600, 8)
x[:, 0] += x[:, 0].sign()
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.000001)
for epoch in range(30):
    for start in range(0, 400, 40):
        optimizer.zero_grad()
        loss = criterion(model(x[start : start + 40]), y[start : start + 40])
        loss.backward()
        optimizer.step()
correct = (model(x[400:]).argmax(1) == y[400:]).float().mean().item()
print("accuracy:", correct)
"""
"""It learns too slowly to get anywhere. Each run draws other numbers. At a usual rate it makes no
mistake, which ends a search.
"""
SEEDED = FAULTY.replace("\nx =", "\ntorch.manual_seed(7)\nx =", 1)
