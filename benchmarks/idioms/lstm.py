"""An embedding, packed sequences and an LSTM, with early stopping by hand."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)
        return self.head(torch.cat([hidden[0], hidden[1]], dim=1)).squeeze(1)


torch.manual_seed(0)
tokens = torch.randint(1, 30, (128, 12))
lengths = torch.randint(3, 13, (128,))
labels = (tokens[:, 0] > 15).float()
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
best, patience = float("inf"), 0
for _ in range(30):
    optimizer.zero_grad()
    loss = criterion(model(tokens, lengths), labels)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(repr(loss.item()))
    patience = 0 if loss.item() < best else patience + 1
    best = min(best, loss.item())
    if patience > 3:
        break
