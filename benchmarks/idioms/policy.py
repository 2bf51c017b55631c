"""A policy gradient: a loss that no function of the library computes."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softmax(dim=-1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(30):
    logs, rewards = [], []
    for _ in range(10):
        state = torch.randn(4)
        chosen = Categorical(policy(state))
        action = chosen.sample()
        logs.append(chosen.log_prob(action))
        rewards.append(1.0 if (state[0] > 0) == bool(action) else -1.0)
    loss = -(torch.stack(logs) * torch.tensor(rewards)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
