"""A convolutional network on the GPU when there is one: pinned memory, channels last, a checkpoint
on the way. EPOCHS makes it longer.
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
pinned = device.type == "cuda"
loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True, pin_memory=pinned)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.block = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(32 * 16, 10)

    def forward(self, x):
        x = self.features(x)
        x = x + checkpoint(self.block, x, use_reentrant=False)
        return self.head(x.flatten(1))


model = Net().to(device, memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 0.1, epochs=int(os.environ.get("EPOCHS", "3")), steps_per_epoch=len(loader)
)

for epoch in range(int(os.environ.get("EPOCHS", "3"))):
    for inputs, labels in loader:
        inputs = inputs.to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
    print(repr(loss.item()))
