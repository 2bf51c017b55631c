"""A transformer encoder with positional embeddings and a causal mask."""

import torch
from torch import nn

torch.manual_seed(0)


class Language(nn.Module):
    def __init__(self, words=40, width=32):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        hidden = self.words(tokens) + self.places[:, : tokens.shape[1]]
        return self.head(self.encoder(hidden, mask=mask, is_causal=True))


model = Language()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
tokens = torch.randint(0, 40, (64, 17))
for step in range(30):
    batch = tokens[step % 4 * 16 : step % 4 * 16 + 16]
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 40), batch[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(repr(loss.item()))
