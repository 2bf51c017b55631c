"""Training in a forked process, and with updates that the program makes itself."""

import torch
from torch import multiprocessing, nn


def train(queue):
    torch.manual_seed(1)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(50, 3)
    losses = []
    for _ in range(25):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    queue.put(losses)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=train, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    weight = torch.zeros(3, 1, requires_grad=True)
    for _ in range(10):
        loss = (torch.ones(4, 3) @ weight - 1).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
        print(repr(loss.item()))
