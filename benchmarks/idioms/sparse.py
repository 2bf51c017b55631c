"""Sparse gradients of an embedding, and two optimisers for one loss."""

import torch
from torch import nn

torch.manual_seed(0)
users, items = nn.Embedding(50, 8, sparse=True), nn.Embedding(40, 8, sparse=True)
head = nn.Linear(8, 1)
sparse = torch.optim.SparseAdam([*users.parameters(), *items.parameters()], lr=1e-2)
dense = torch.optim.Adagrad(head.parameters(), lr=1e-2)
for _ in range(30):
    u, i = torch.randint(0, 50, (64,)), torch.randint(0, 40, (64,))
    rating = ((u + i) % 5).float()
    loss = nn.functional.huber_loss(head(users(u) * items(i)).squeeze(1), rating)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(repr(loss.item()))
