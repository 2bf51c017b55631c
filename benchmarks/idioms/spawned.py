"""Training in a process that the program starts."""

import torch
from torch import multiprocessing, nn


def train(rank, queue):
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(3, 8), nn.Sigmoid(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(50, 3)
    losses = []
    for _ in range(25):
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    queue.put(losses)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=train, args=(0, queue))
    process.start()
    print(queue.get())
    process.join()
