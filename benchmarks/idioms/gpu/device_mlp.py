"""A small classifier whose data lie on the GPU: the loss is read once an epoch. EPOCHS makes it
longer.
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32, device=device)
y = torch.tensor(digits.target, device=device)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(int(os.environ.get("EPOCHS", "5"))):
    for rows in torch.randperm(len(x), device=device).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(repr(loss.item()))
