"""DataParallel over all devices, a recurrent layer, a learning rate found on the way."""

import torch
from torch import nn

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 5)

    def forward(self, words):
        self.lstm.flatten_parameters()
        return self.head(self.lstm(self.embedding(words))[0])


model = nn.DataParallel(Tagger()).to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
words = torch.randint(0, 50, (128, 12), device=device)
tags = words % 5

for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
    loss.backward()
    optimizer.step()
    schedule.step(loss)
    print(repr(loss.item()))
