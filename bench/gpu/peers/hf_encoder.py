#!/usr/bin/env python3
"""Hugging Face Trainer on BERT and DistilBERT with random weights and random tokens of full length: the peer of the
encoders' rows. Prints one JSON line like hf_trainer.py, whose defaults it has. --compile: under torch.compile.

mlm: BertForMaskedLM with labels at 15 % of the positions; classify: DistilBertForSequenceClassification of six classes;
squad: BertForQuestionAnswering.
"""
import argparse
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from transformers import (BertConfig, BertForMaskedLM, BertForQuestionAnswering, DistilBertConfig,
                          DistilBertForSequenceClassification)

from hf_trainer import timed

VOCABULARY, CLASSES, MASKED = 30522, 6, 0.15


class Samples(torch.utils.data.Dataset):
    def __init__(self, task, samples, tokens):
        self.columns = {"input_ids": torch.randint(0, VOCABULARY, (samples, tokens))}
        if task == "mlm":
            chosen = torch.rand(samples, tokens) < MASKED
            self.columns["labels"] = torch.where(chosen, self.columns["input_ids"], torch.tensor(-100))
        elif task == "classify":
            self.columns["labels"] = torch.randint(0, CLASSES, (samples,))
        else:
            self.columns["start_positions"] = torch.randint(0, tokens, (samples,))
            self.columns["end_positions"] = torch.randint(0, tokens, (samples,))

    def __len__(self):
        return len(self.columns["input_ids"])

    def __getitem__(self, i):
        return {name: column[i] for name, column in self.columns.items()}


def model_of(a):
    if a.task == "classify":
        return DistilBertForSequenceClassification(
            DistilBertConfig(num_labels=CLASSES, dropout=a.dropout, attention_dropout=a.dropout))
    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                        hidden_dropout_prob=a.dropout, attention_probs_dropout_prob=a.dropout)
    return BertForMaskedLM(config) if a.task == "mlm" else BertForQuestionAnswering(config)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--task", default="mlm", choices=["mlm", "classify", "squad"])
    a.add_argument("--batch", type=int, default=56)
    a.add_argument("--tokens", type=int, default=128)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--warmup", type=int, default=5)
    a.add_argument("--accumulation", type=int, default=1)
    a.add_argument("--dropout", type=float, default=0.1, help="of the hidden layers and of attention")
    a.add_argument("--precision", default="bf16", choices=["bf16", "fp16", "tf32", "fp32"])
    a.add_argument("--compile", action="store_true")
    a = a.parse_args()
    what = {"peer": "HF Trainer" + (" + torch.compile" if a.compile else ""), "transformers": transformers.__version__,
            "torch": torch.__version__, "task": a.task, "batch": a.batch, "tokens": a.tokens,
            "accumulation": a.accumulation, "precision": a.precision, "dropout": a.dropout}
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest" if a.precision == "fp32" else "high")
    try:
        samples = (a.steps + a.warmup) * a.batch * a.accumulation
        seconds = timed(a, model_of(a), Samples(a.task, samples, a.tokens), torch_compile=a.compile)
    except torch.OutOfMemoryError as e:
        print(e, file=sys.stderr)
        print(json.dumps({**what, "error": "out of memory"}))
        return
    samples_per_second = a.batch * a.accumulation / seconds
    print(json.dumps({
        **what, "ms_per_step": round(seconds * 1e3, 3), "samples_per_second": round(samples_per_second, 1),
        "tokens_per_second": round(samples_per_second * a.tokens, 1),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)}))


if __name__ == "__main__":
    main()
