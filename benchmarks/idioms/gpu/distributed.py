"""DistributedDataParallel with one process, on NCCL or gloo."""

import os
import socket

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

cuda = torch.cuda.is_available()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
dist.init_process_group("nccl" if cuda else "gloo", rank=0, world_size=1)
torch.manual_seed(0)
device = torch.device("cuda:0" if cuda else "cpu")
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3)).to(device)
model = DistributedDataParallel(net, device_ids=[0] if cuda else None)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(256, 20, device=device)
y = x[:, :3].argmax(1)

for step in range(40):
    optimizer.zero_grad()
    if step % 2:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    else:
        with model.no_sync():
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
    print(repr(loss.item()))
dist.destroy_process_group()
