#!/usr/bin/env python3
"""Loss curves of tally-train and of PyTorch, from the same weights on the same batches of a real text.

    curves.py --train TALLY_TRAIN --text FILE --out DIR [--steps 500]

A GPT-2 of 6 layers, 512 wide, on the text's bytes, 32 blocks of 256 a step, in fp32 (no TF32) and bf16. PyTorch's model is
transformers' GPT2LMHeadModel under torch.optim.AdamW, in bf16 under autocast. Writes curves.csv, and curves.png where
there is matplotlib; prints by how much the curves differ.
"""
import argparse
import csv
import json
import math
import os
import subprocess
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SEQUENCE, BATCH, WARMUP, LR, MIN_LR, DECAY, SEED = 256, 32, 50, 6e-4, 6e-5, 0.1, 1234
MASK = 2**64 - 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def shuffled(size, epoch):
    """The order of an epoch's blocks: src/data/tokens/permutation.h's Feistel network."""
    seed = mix64(mix64(mix64(SEED) ^ mix64(epoch)))
    half = 1
    while half < 31 and 1 << (2 * half) < size:
        half += 1
    mask = (1 << half) - 1
    for index in range(size):
        while True:
            left, right = index >> half, index & mask
            for turn in range(4):
                left, right = right, left ^ (mix64(right ^ mix64((seed + turn) & MASK)) & mask)
            index = left << half | right
            if index < size:
                break
        yield index


def batches(text, steps):
    """Byte ids and targets of each step, as `--epochs` orders them."""
    blocks = (len(text) - 1) // SEQUENCE
    epoch, order, taken = 0, [], 0
    while taken < steps * BATCH:
        order.extend(shuffled(blocks, epoch))
        taken += blocks
        epoch += 1
    for step in range(steps):
        chosen = order[step * BATCH:(step + 1) * BATCH]
        yield [text[b * SEQUENCE:(b + 1) * SEQUENCE + 1] for b in chosen]


def rate(step, steps):
    if step <= WARMUP:
        return LR * step / WARMUP
    return MIN_LR + (LR - MIN_LR) * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP))) / 2


def in_pytorch(start, text, steps, precision):
    import torch
    from transformers import GPT2LMHeadModel
    torch.set_float32_matmul_precision("highest")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = GPT2LMHeadModel.from_pretrained(start).to(device).train()
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": DECAY},
         {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0}],
        betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for step, rows in enumerate(batches(text, steps)):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        ids = torch.tensor([list(row) for row in rows], device=device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            logits = model(ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def run(tool, *flags):
    done = subprocess.run([tool, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"curves.py: exit code {done.returncode}: {' '.join(flags)}\n{done.stdout}{done.stderr}")


def make_start(path):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(5)
    GPT2LMHeadModel(GPT2Config(vocab_size=257, n_positions=SEQUENCE, n_embd=512, n_layer=6, n_head=8, bos_token_id=0,
                               eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).save_pretrained(path)


def plot(pairs, difference, path):
    """Draws each pair (label, color, steps, losses, label of the peer or None, the peer's losses) and its difference."""
    try:
        import matplotlib
    except ImportError:
        print(f"{os.path.basename(sys.argv[0])}: no plot: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 7), height_ratios=(2, 1))
    for label, color, steps, ours, peer, theirs in pairs:
        if peer:
            above.plot(steps, theirs, color=color, linewidth=3, alpha=0.35, label=peer)
        above.plot(steps, ours, color=color, linewidth=0.8, label=label)
        below.plot(steps, [a - b for a, b in zip(ours, theirs)], color=color, linewidth=0.8, label=label)
    above.set_ylabel("loss")
    above.legend()
    below.set_ylabel(difference)
    below.set_xlabel("step")
    below.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def plot_precisions(curves, path):
    pairs = []
    for precision, color in (("fp32", "tab:blue"), ("bf16", "tab:orange")):
        ours, theirs = curves["tally " + precision], curves["pytorch " + precision]
        pairs.append(("tally-train " + precision, color, range(1, len(ours) + 1), ours, "PyTorch " + precision, theirs))
    plot(pairs, "tally-train - PyTorch", path)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train", default="build/bin/tally-train")
    p.add_argument("--text", default=".deps/text/english.txt")
    p.add_argument("--out", default=".")
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--plot-only", action="store_true", help="make curves.png of DIR's curves.csv again")
    a = p.parse_args()
    table, picture = os.path.join(a.out, "curves.csv"), os.path.join(a.out, "curves.png")
    if a.plot_only:
        with open(table) as file:
            rows = list(csv.DictReader(file))
        plot_precisions({name: [float(row[name]) for row in rows] for name in rows[0] if name != "step"}, picture)
        return
    work = os.path.join(a.out, "curves")
    os.makedirs(work, exist_ok=True)
    with open(a.text, "rb") as file:
        text = file.read().decode("utf-8", "ignore").encode()
    with open(os.path.join(work, "text.txt"), "wb") as file:
        file.write(text)
    corpus, start = os.path.join(work, "corpus"), os.path.join(work, "start")
    run(a.train, "prepare", "--tokenizer-type", "bytes", "--input", os.path.join(work, "text.txt"), "--output", corpus)
    make_start(start)
    blocks = (len(text) - 1) // SEQUENCE
    curves = {}
    for precision in ("fp32", "bf16"):
        record = os.path.join(work, precision + ".json")
        epochs = -(-a.steps * BATCH // blocks)
        run(a.train, "--load-hf", start, "--data-path", corpus, "--split", "1", "--epochs", str(epochs),
            "--micro-batch-size", str(BATCH), "--global-batch-size", str(BATCH), "--lr", str(LR), "--min-lr", str(MIN_LR),
            "--lr-warmup-iters", str(WARMUP), "--lr-decay-iters", str(a.steps), "--lr-decay-style", "cosine",
            "--weight-decay", str(DECAY), "--adam-beta2", "0.95", "--clip-grad", "1", "--seed", str(SEED), "--precision",
            precision, "--exit-interval", str(a.steps), "--record", record)
        with open(record) as file:
            curves["tally " + precision] = json.load(file)["steps"]["loss"][:a.steps]
        curves["pytorch " + precision] = in_pytorch(start, text, a.steps, precision)
        ours, theirs = curves["tally " + precision], curves["pytorch " + precision]
        gaps = [abs(x - y) for x, y in zip(ours, theirs)]
        print(f"{precision}: PyTorch {theirs[0]:.4f} to {theirs[-1]:.4f}, ours {ours[0]:.4f} to {ours[-1]:.4f}; they differ by "
              f"{sum(gaps) / len(gaps):.2e} on average, {max(gaps):.2e} at most, {max(gaps[:20]):.2e} in the first 20 steps",
              flush=True)
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *curves])
        for step, row in enumerate(zip(*curves.values())):
            writer.writerow([step + 1, *(f"{value:.6f}" for value in row)])
    plot_precisions(curves, picture)


if __name__ == "__main__":
    main()
