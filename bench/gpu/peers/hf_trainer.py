#!/usr/bin/env python3
"""Hugging Face Trainer on GPT-2 with random weights and random tokens: the peer of the run_clm benchmarks.

Prints one JSON line like compiled_gpt.py: tokens/s from the median time between optimizer steps.
"""
import argparse
import json
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

PRESETS = {"124M": (12, 768, 12), "355M": (24, 1024, 16), "774M": (36, 1280, 20), "1.5B": (48, 1600, 25)}


class Tokens(torch.utils.data.Dataset):
    def __init__(self, samples, tokens):
        self.ids = torch.randint(0, 50257, (samples, tokens))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class Clock(TrainerCallback):
    def __init__(self):
        self.times = []

    def on_step_end(self, args, state, control, **kwargs):
        torch.cuda.synchronize()
        self.times.append(time.perf_counter())


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="124M", choices=PRESETS)
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--tokens", type=int, default=1024)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--warmup", type=int, default=5)
    a.add_argument("--accumulation", type=int, default=1)
    a.add_argument("--precision", default="bf16", choices=["bf16", "fp16", "tf32", "fp32"])
    a = a.parse_args()
    layers, hidden, heads = PRESETS[a.model]
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest" if a.precision == "fp32" else "high")
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, n_positions=max(1024, a.tokens)))
    steps = a.steps + a.warmup
    clock = Clock()
    trainer = Trainer(
        model=model, train_dataset=Tokens(steps * a.batch * a.accumulation, a.tokens), callbacks=[clock],
        args=TrainingArguments(
            output_dir="/tmp/hf-trainer", max_steps=steps, per_device_train_batch_size=a.batch,
            gradient_accumulation_steps=a.accumulation, bf16=a.precision == "bf16", fp16=a.precision == "fp16",
            tf32=a.precision != "fp32", optim="adamw_torch_fused", save_strategy="no", report_to=[],
            logging_strategy="no", disable_tqdm=True, dataloader_pin_memory=True))
    trainer.train()
    gaps = [b - c for b, c in zip(clock.times[a.warmup:], clock.times[a.warmup - 1:])]
    seconds = statistics.median(gaps)
    print(json.dumps({
        "peer": "HF Trainer", "transformers": transformers.__version__, "torch": torch.__version__, "model": a.model,
        "batch": a.batch, "tokens": a.tokens, "accumulation": a.accumulation, "precision": a.precision,
        "ms_per_step": round(seconds * 1e3, 3),
        "tokens_per_second": round(a.batch * a.accumulation * a.tokens / seconds, 1),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)}))


if __name__ == "__main__":
    main()
