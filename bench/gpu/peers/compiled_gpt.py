#!/usr/bin/env python3
"""A GPT-2 or Llama in plain PyTorch under torch.compile: the Python peer that tally-train is measured against.

The shapes are GPT-2's (learned positions, tanh GELU, tied embeddings, pre-LayerNorm, biases, vocabulary padded to
50304) or those of Llama 3.2 1B or six layers of Llama 3.1 8B (RMSNorm, SwiGLU, rotary positions, grouped queries, no biases, 128256 tokens). Q, K and
V are one GEMM, and so are gates and ups. Numerics: bf16 autocast over float32 master weights, fused AdamW, clipping at 1.0. With --float8 the blocks' linear layers are torchao's Float8Linear. Data are random tokens already
on the GPU. Prints one JSON line a round: tokens/s over the round's steps, which follow each other without a pause, ms
per step, peak memory, last loss. With --on-request it prints {"ready": true} once warm, and measures one round for each
line that it reads, so that rounds of another program can lie between its own. Under torchrun it is data parallel
(DistributedDataParallel around the compiled model, gradients in its buckets): --batch is that of one GPU, tokens/s are
those of all.
"""
import argparse
import datetime
import json
import math
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

PRESETS = {"124M": (12, 768, 12), "355M": (24, 1024, 16), "774M": (36, 1280, 20), "1.5B": (48, 1600, 25)}
# Layers, hidden, heads of Q, heads of K and V, MLP.
LLAMAS = {"llama-1b": (16, 2048, 32, 8, 8192), "llama-8b-6": (6, 4096, 32, 8, 14336)}


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.c_attn = nn.Linear(hidden, 3 * hidden)
        self.attn_proj = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.c_fc = nn.Linear(hidden, 4 * hidden)
        self.mlp_proj = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, positions, vocabulary=50304):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden)
        self.wpe = nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * layers) if "proj" in name else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, groups, ffn):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, hidden // heads
        self.ln_1 = nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, (heads + 2 * groups) * self.head, bias=False)
        self.attn_proj = nn.Linear(hidden, hidden, bias=False)
        self.ln_2 = nn.RMSNorm(hidden, eps=1e-5)
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.mlp_proj = nn.Linear(ffn, hidden, bias=False)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        qkv = self.qkv(self.ln_1(x)).view(b, t, -1, self.head).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.groups, self.groups), dim=1)
        y = F.scaled_dot_product_attention(self.rotate(q, cos, sin), self.rotate(k, cos, sin), v, is_causal=True,
                                           enable_gqa=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.ln_2(x)).chunk(2, dim=-1)
        return x + self.mlp_proj(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, layers, hidden, heads, groups, ffn, positions, vocabulary=128256, base=500000.0):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(LlamaBlock(hidden, heads, groups, ffn) for _ in range(layers))
        self.ln_f = nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        width = hidden // heads
        rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.arange(positions, dtype=torch.float64)[:, None] * rates
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * layers) if "proj" in name else 0.02)

    def forward(self, ids, targets):
        x = self.wte(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))


def use_float8(model, recipe):
    """The linear layers of the blocks; the head stays in bf16, as ours does."""
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    convert_to_float8_training(model, config=Float8LinearConfig.from_recipe_name(recipe),
                               module_filter_fn=lambda module, name: name != "head")


class World:
    """The processes that torchrun started; one without it."""

    def __init__(self, device="cuda"):
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if device == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        if self.size > 1:
            torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
            # Ranks wait for a request on the CPU: a waiting NCCL kernel would keep its GPU busy.
            self.waiting = torch.distributed.new_group(backend="gloo", timeout=datetime.timedelta(hours=2))

    def wrap(self, model):
        if self.size == 1:
            return model
        return nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()], gradient_as_bucket_view=True)

    def print(self, what):
        if self.rank == 0:
            print(json.dumps(what), flush=True)

    def asked(self):
        """Whether another round is wanted; rank 0 reads the requests."""
        line = self.rank == 0 and sys.stdin.readline() != ""
        if self.size == 1:
            return line
        wanted = torch.tensor([int(line)])
        torch.distributed.broadcast(wanted, 0, group=self.waiting)
        return bool(wanted.item())


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="124M", choices=[*PRESETS, *LLAMAS])
    a.add_argument("--batch", type=int, default=64)
    a.add_argument("--tokens", type=int, default=1024)
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--warmup", type=int, default=10)
    a.add_argument("--precision", default="bf16", choices=["bf16", "fp32", "tf32"])
    a.add_argument("--float8", choices=["tensorwise", "rowwise"], help="torchao's recipe; needs torchao")
    a.add_argument("--no-compile", action="store_true")
    a.add_argument("--on-request", action="store_true")
    a = a.parse_args()
    world = World()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest" if a.precision == "fp32" else "high")
    llama = a.model in LLAMAS
    model = (Llama(*LLAMAS[a.model], a.tokens) if llama else Gpt(*PRESETS[a.model], a.tokens)).cuda()
    if a.float8:
        use_float8(model, a.float8)
    decayed = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=True)
    step_model = world.wrap(model if a.no_compile else torch.compile(model))
    torch.manual_seed(1 + world.rank)
    ids = torch.randint(0, 50257, (a.batch, a.tokens + 1), device="cuda")
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = step_model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(a.warmup):
        loss = step()
    torch.cuda.synchronize()

    def measure():
        start = time.perf_counter()
        for _ in range(a.steps):
            loss = step()
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / a.steps
        world.print({
            "peer": ("eager " if a.no_compile else "torch.compile ") + ("Llama" if llama else "GPT") +
                    (" DDP" if world.size > 1 else ""),
            "torch": torch.__version__, "gpus": world.size,
            "model": a.model, "batch": a.batch, "tokens": a.tokens, "precision": a.precision + (f" float8 {a.float8}" if a.float8 else ""),
            "ms_per_step": round(seconds * 1e3, 3),
            "tokens_per_second": round(world.size * a.batch * a.tokens / seconds, 1),
            "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2), "loss": round(loss.item(), 4)})

    if not a.on_request:
        measure()
        return
    world.print({"ready": True})
    while world.asked():
        for _ in range(3):  # the clock of a GPU that was idle or did other work
            step()
        torch.cuda.synchronize()
        measure()


if __name__ == "__main__":
    main()
