"""A frozen backbone, a new head, two groups of parameters and a scheduler on a plateau."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
neck, head = nn.Linear(32, 16), nn.Linear(16, 3)
for parameter in backbone.parameters():
    parameter.requires_grad = False
groups = [{"params": neck.parameters(), "lr": 1e-4}, {"params": head.parameters()}]
optimizer = torch.optim.Adam(groups, lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
x, y = torch.rand(60, 1, 8, 8), torch.randint(0, 3, (60,))
backbone.eval()
for _ in range(25):
    with torch.no_grad():
        features = backbone(x)
    loss = nn.functional.cross_entropy(head(torch.relu(neck(features))), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    plateau.step(loss.item())
    print(repr(loss.item()), [group["lr"] for group in optimizer.param_groups])
