#!/usr/bin/env python3
"""Hugging Face Trainer on GPT-2 with random weights and random tokens: the peer of the run_clm benchmarks.

Prints one JSON line like compiled_gpt.py: tokens/s over all optimizer steps after the warm-up, which follow each other without
a pause. What does not fit in the GPU's memory gives a line with "error" instead. Of its own are the Trainer's defaults:
autocast over float32 weights, dropout as the model's configuration says (GPT-2: 0.1 in all three places, --dropout changes
it), loss from float32 logits, gradients clipped at 1.0, linear decay of the rate; only the optimizer is the fused AdamW, the
fastest that PyTorch has.
"""
import argparse
import json
import os
import sys
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
    """The seconds from the end of step `first` to the end of step `last`; no other step waits for the GPU on our account."""

    def __init__(self, first, last):
        self.first, self.last, self.times = first, last, []

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step in (self.first, self.last):
            torch.cuda.synchronize()
            self.times.append(time.perf_counter())

    def seconds(self):
        return (self.times[1] - self.times[0]) / (self.last - self.first)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="124M", choices=PRESETS)
    a.add_argument("--batch", type=int, default=8)
    a.add_argument("--tokens", type=int, default=1024)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--warmup", type=int, default=5)
    a.add_argument("--accumulation", type=int, default=1)
    a.add_argument("--dropout", type=float, default=0.1, help="of embedding, residual branches and attention")
    a.add_argument("--precision", default="bf16", choices=["bf16", "fp16", "tf32", "fp32"])
    a = a.parse_args()
    what = {"peer": "HF Trainer", "transformers": transformers.__version__, "torch": torch.__version__, "model": a.model,
            "batch": a.batch, "tokens": a.tokens, "accumulation": a.accumulation, "precision": a.precision,
            "dropout": a.dropout}
    try:
        seconds = train(a)
    except torch.OutOfMemoryError as e:
        print(e, file=sys.stderr)
        print(json.dumps({**what, "error": "out of memory"}))
        return
    print(json.dumps({
        **what, "ms_per_step": round(seconds * 1e3, 3),
        "tokens_per_second": round(a.batch * a.accumulation * a.tokens / seconds, 1),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)}))


def train(a):
    """Seconds a step."""
    layers, hidden, heads = PRESETS[a.model]
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest" if a.precision == "fp32" else "high")
    model = GPT2LMHeadModel(GPT2Config(
        n_layer=layers, n_embd=hidden, n_head=heads, n_positions=max(1024, a.tokens), resid_pdrop=a.dropout,
        embd_pdrop=a.dropout, attn_pdrop=a.dropout))
    return timed(a, model, Tokens((a.steps + a.warmup) * a.batch * a.accumulation, a.tokens))


def timed(a, model, dataset, **more):
    """Seconds a step of Trainer on the model; `more`: further TrainingArguments."""
    steps = a.steps + a.warmup
    clock = Clock(a.warmup, steps)
    trainer = Trainer(
        model=model, train_dataset=dataset, callbacks=[clock],
        args=TrainingArguments(
            output_dir="/tmp/hf-trainer", max_steps=steps, per_device_train_batch_size=a.batch,
            gradient_accumulation_steps=a.accumulation, bf16=a.precision == "bf16", fp16=a.precision == "fp16",
            tf32=a.precision != "fp32", optim="adamw_torch_fused", save_strategy="no", report_to=[],
            logging_strategy="no", disable_tqdm=True, dataloader_pin_memory=True, **more))
    trainer.train()
    return clock.seconds()


if __name__ == "__main__":
    main()
