"""A whole training step that CUDA records once and replays."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
criterion = nn.MSELoss()
capturable = device == "cuda"
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=capturable)
data = torch.randn(40, 64, 16, device=device)
x, y = torch.randn(64, 16, device=device), torch.randn(64, 1, device=device)


def step():
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


if device == "cuda":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    print(torch.cuda.memory_allocated() < 64 << 20)

for inputs in data:
    x.copy_(inputs)
    y.copy_(inputs.sum(1, keepdim=True))
    if device == "cuda":
        graph.replay()
    else:
        optimizer.zero_grad(set_to_none=True)
        loss = step()
    print(repr(loss.item()))
