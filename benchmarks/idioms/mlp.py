"""A classifier with a DataLoader, Adam and a validation pass. EPOCHS makes it longer."""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=64, shuffle=True)
valid = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=256)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(int(os.environ.get("EPOCHS", "4"))):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print(repr(loss.item()))
    model.eval()
    with torch.no_grad():
        for inputs, labels in valid:
            print("valid", repr(criterion(model(inputs), labels).item()))
