"""The Trainer of Hugging Face on a tiny random model."""

import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=32, max_position_embeddings=16, num_labels=2,
)  # fmt: skip
model = BertForSequenceClassification(config)
ids = torch.randint(0, 50, (64, 8))
rows = [{"input_ids": row, "labels": int(row[0] > 25)} for row in ids]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=8, learning_rate=1e-3,
        logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        gradient_accumulation_steps=2,
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)  # it prints how long it took
    trainer.train()
for row in trainer.state.log_history:
    print(row.get("loss"), row.get("grad_norm"))
