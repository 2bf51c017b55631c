"""Checkpoints by torch.save and pickle, an averaged copy, and training that goes on from one."""

import copy
import io
import pickle

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
average = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = pickle.loads(pickle.dumps(nn.MSELoss()))
x = torch.randn(80, 6)
y = x[:, :2]
for step in range(40):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 0.1)
    if step == 20:
        file = io.BytesIO()
        torch.save({"model": model, "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        state = torch.load(file, weights_only=False)
        model = state["model"]
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer.load_state_dict(state["optimizer"])
        print(sorted(vars(model)), len(file.getvalue()))
    print(repr(loss.item()))
