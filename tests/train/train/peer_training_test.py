"""Twenty steps of tally-train and of PyTorch from the same weights on the same text: the losses of every step. And the
loss scale of float16 against the rule of PyTorch's own gradient scaler.

    peer_training_test.py TALLY_TRAIN SOURCE_DIRECTORY
"""
import json
import math
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
tool, root = sys.argv[1], sys.argv[2]
try:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
except ImportError as error:
    print(f"SKIPPED: {error} (scripts/setup --tests provides transformers)")
    sys.exit(77)

torch.set_num_threads(1)
SEQUENCE, STEPS, WARMUP, LR, MIN_LR, DECAY = 32, 20, 4, 3e-3, 3e-4, 0.1


def run(*flags):
    done = subprocess.run([tool, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(flags)}\n{done.stdout}{done.stderr}")
    return done.stdout


def rate(step, style):
    if step <= WARMUP:
        return LR * step / WARMUP
    r = (step - WARMUP) / (STEPS - WARMUP)
    return {"linear": MIN_LR + (LR - MIN_LR) * (1 - r), "constant": LR,
            "cosine": MIN_LR + (LR - MIN_LR) * (1 + math.cos(math.pi * r)) / 2}[style]


def train_in_pytorch(model, tokens, style, ignored=-100):
    """All blocks are one batch, so that the order of the samples does not matter. After a token `ignored` none is
    predicted."""
    count = (len(tokens) - 1) // SEQUENCE
    ids = torch.tensor(tokens[:count * SEQUENCE]).view(count, SEQUENCE)
    targets = torch.tensor(tokens[1:count * SEQUENCE + 1])
    targets[ids.flatten() == ignored] = -100
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": DECAY},
         {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0}],
        betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, style)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids).logits.flatten(0, 1), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


with tempfile.TemporaryDirectory() as work:
    at = lambda name: os.path.join(work, name)  # noqa: E731
    text = open(os.path.join(root, "CONTRIBUTING.md"), encoding="utf-8").read()[:SEQUENCE * 12 + 5]
    tokens = list(text.encode("utf-8"))
    with open(at("text.txt"), "wb") as f:
        f.write(bytes(tokens))
    run("prepare", "--tokenizer-type", "bytes", "--input", at("text.txt"), "--output", at("corpus"))
    count = (len(tokens) - 1) // SEQUENCE
    torch.manual_seed(5)
    GPT2LMHeadModel(GPT2Config(vocab_size=257, n_positions=SEQUENCE, n_embd=48, n_layer=3, n_head=4, bos_token_id=0,
                               eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).save_pretrained(at("start"))
    flags = ["--load-hf", at("start"), "--data-path", at("corpus"), "--split", "1", "--device", "cpu", "--epochs",
             str(STEPS), "--micro-batch-size", str(count // 2), "--global-batch-size", str(count), "--lr", str(LR),
             "--min-lr", str(MIN_LR), "--lr-warmup-iters", str(WARMUP),
             "--weight-decay", str(DECAY), "--adam-beta2", "0.95", "--clip-grad", "1",
             "--record", at("r.json")]
    assert count % 2 == 0, "two micro batches"
    for precision, style, tolerance in (("fp64", "cosine", 1e-10), ("fp32", "cosine", 1e-5), ("fp32", "linear", 1e-5),
                                        ("fp32", "constant", 1e-5), ("bf16", "cosine", 2e-2)):
        model = GPT2LMHeadModel.from_pretrained(at("start")).train()
        theirs = train_in_pytorch(model.double() if precision == "fp64" else model, tokens, style)
        run(*flags, "--precision", precision, "--lr-decay-style", style)
        record = json.load(open(at("r.json"), encoding="utf-8"))
        ours = record["steps"]["loss"]
        assert len(ours) == STEPS == len(record["results"]["epochs"])
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        print(f"{precision}, {style}: {theirs[0]:.4f} to {theirs[-1]:.4f}, losses differ by at most {worst:.2e}")
        if not worst <= tolerance or theirs[-1] > theirs[0] - 1:
            sys.exit(f"FAILED: more than {tolerance}, or nothing was learnt: {ours} and {theirs}")

    # A layer's shards, stages of layers, and replicas, from the same weights.
    layouts = {"TP 2 x PP 3": ("6", "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "3"),
               "TP 2 with sequence parallelism, two replicas that share the optimizer": (
                   "4", "--tensor-model-parallel-size", "2", "--sequence-parallel", "--use-distributed-optimizer")}
    theirs = train_in_pytorch(GPT2LMHeadModel.from_pretrained(at("start")).train().double(), tokens, "cosine")
    for name, (processes, *layout) in layouts.items():
        run("--nproc-per-node", processes, *flags, "--micro-batch-size", str(count // 4), "--precision", "fp64",
            "--lr-decay-style", "cosine", *layout)
        ours = json.load(open(at("r.json"), encoding="utf-8"))["steps"]["loss"]
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        print(f"{name}: losses differ by at most {worst:.2e}")
        if len(ours) != STEPS or not worst <= 1e-10:
            sys.exit(f"FAILED: {name}: {ours} and {theirs}")

    # Masked targets, of which every micro batch has another number: theirs is the mean over all that count.
    end = 256
    borders = [0, 2, 4, 7, 11, 13, 60, 61, 120, 250, 251, 300, len(text)]
    documents = [text[a:b] for a, b in zip(borders, borders[1:])]
    with open(at("parts.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": d}) + "\n" for d in documents)
    run("prepare", "--tokenizer-type", "bytes", "--input", at("parts.jsonl"), "--output", at("parts"), "--append-eod")
    parts = [token for d in documents for token in (*d.encode("utf-8"), end)]
    assert (len(parts) - 1) // SEQUENCE == count, "as many blocks as before"
    theirs = train_in_pytorch(GPT2LMHeadModel.from_pretrained(at("start")).train().double(), parts, "cosine", end)
    masked = ["--eod-mask-loss", "--tokenizer-type", "bytes", "--data-path", at("parts"), "--global-batch-size",
              str(count), "--precision", "fp64", "--lr-decay-style", "cosine"]
    for name, layout in {"one micro batch": ["--micro-batch-size", str(count)],
                         "single samples": ["--micro-batch-size", "1"],
                         "two replicas": ["--nproc-per-node", "2", "--micro-batch-size", "1"],
                         "TP 2 x PP 3": ["--nproc-per-node", "6", "--micro-batch-size", "2",
                                         "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "3"]
                         }.items():
        run(*flags, *masked, "--calculate-per-token-loss", *layout)
        ours = json.load(open(at("r.json"), encoding="utf-8"))["steps"]["loss"]
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        print(f"--calculate-per-token-loss, {name}: losses differ by at most {worst:.2e}")
        if len(ours) != STEPS or not worst <= 1e-10:
            sys.exit(f"FAILED: {name}: {ours} and {theirs}")

    # float16: with a hysteresis of 1 Megatron-LM's rule is that of torch.amp.GradScaler.
    said = run(*flags, "--precision", "fp16", "--lr-decay-style", "cosine", "--hysteresis", "1", "--loss-scale-window",
               "3", "--initial-loss-scale", str(2.0 ** 24))
    steps = json.load(open(at("r.json"), encoding="utf-8"))["steps"]
    scale, tracker, updates = torch.full((1,), 2.0 ** 24), torch.zeros(1, dtype=torch.int32), 0
    for ours, skipped, learning_rate in zip(steps["loss_scale"], steps["skipped"], steps["learning_rate"]):
        if ours != scale.item():
            sys.exit(f"FAILED: the scale is {ours}, and GradScaler's {scale.item()}: {steps['loss_scale']}")
        torch._amp_update_scale_(scale, tracker, torch.full((1,), float(skipped)), 2.0, 0.5, 3)
        # Neither Megatron-LM nor Accelerate steps its scheduler after an update that was skipped.
        if abs(learning_rate - rate(updates, "cosine")) > 1e-15:
            sys.exit(f"FAILED: after {updates} updates the rate is {learning_rate}, not {rate(updates, 'cosine')}")
        updates += not skipped
    if sum(steps["skipped"]) < 2 or sorted(steps["loss_scale"]) == steps["loss_scale"][::-1]:
        sys.exit(f"FAILED: the test is to see overflows and growth: {steps['loss_scale']}")
    if f"; {sum(steps['skipped'])} of {STEPS} updates skipped, because gradients overflowed" not in said:
        sys.exit(f"FAILED: the last line does not say what was skipped: {said}")
    print("loss scales as torch.amp.GradScaler's:", steps["loss_scale"])
