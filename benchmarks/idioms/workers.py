"""A DataLoader with worker processes and a dataset of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(4, generator=generator)
        return x, (x**2).sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Squares(), 40, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(3):
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(repr(loss.item()))


if __name__ == "__main__":
    main()
