"""A variational autoencoder: random numbers in the forward pass, a loss of two parts."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.mean, self.variance = nn.Linear(64, 32), nn.Linear(32, 4), nn.Linear(32, 4)
        self.fc3, self.fc4 = nn.Linear(4, 32), nn.Linear(32, 64)

    def forward(self, x):
        hidden = F.relu(self.fc1(x))
        mean, logvar = self.mean(hidden), self.variance(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, logvar


torch.manual_seed(0)
x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for start in range(0, 1700, 50):
    batch = x[start : start + 50]
    output, mean, logvar = model(batch)
    bce = F.binary_cross_entropy(output, batch, reduction="sum")
    loss = bce - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
