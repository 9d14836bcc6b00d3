"""The Trainer of transformers: dictionaries with runtimes, a state as JSON, checkpoints with generators."""

import net
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

torch.set_num_threads(1)
set_seed(0)
config = BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3
)
model = BertForSequenceClassification(config)
rows = [
    {
        "input_ids": torch.arange(6) + number % 20,
        "attention_mask": torch.ones(6, dtype=torch.long),
        "labels": int(label),
    }
    for number, label in enumerate(net.make_data()[1][:32])
]
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=8, logging_steps=1, save_strategy="epoch",
    eval_strategy="epoch", report_to="none", use_cpu=True,
)  # fmt: skip
trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows)
trainer.train()
trainer.save_model("out/final")
trainer.log_metrics("eval", trainer.evaluate())
trainer.save_state()
