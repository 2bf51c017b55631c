"""A small GAN: two models, two optimisers, three backward passes."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))

for _ in range(40):
    real = torch.randn(64, 2) * 0.5 + 2
    discriminator.zero_grad()
    loss_real = criterion(discriminator(real).view(-1), torch.ones(64))
    loss_real.backward()
    fake = generator(torch.randn(64, 8))
    loss_fake = criterion(discriminator(fake.detach()).view(-1), torch.zeros(64))
    loss_fake.backward()
    optimizer_d.step()

    generator.zero_grad()
    loss_g = criterion(discriminator(fake).view(-1), torch.ones(64))
    loss_g.backward()
    optimizer_g.step()
    print(repr(loss_real.item()), repr(loss_fake.item()), repr(loss_g.item()))
