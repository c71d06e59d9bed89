"""Our GPT, its gradients, schedule and AdamW against PyTorch's modules on the same weights.

usage: gpt_parity.py PEER_DUMP     (tests/train/model/peer_dump.cc)
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
failures = []


def read(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    arrays = {
        name: torch.from_numpy(
            numpy.fromfile(directory / a["file"], a["type"]).reshape(a["shape"]).copy()
        )
        for name, a in manifest["arrays"].items()
    }
    return manifest, arrays


def part(arrays, prefix):
    return {n[len(prefix) + 1:]: a for n, a in arrays.items() if n.startswith(prefix + " ")}


def relative(a, b):
    norm = b.double().norm().item()
    return (a.double() - b.double()).norm().item() / norm if norm else a.double().norm().item()


def check(what, error, tolerance):
    if not error <= tolerance:
        failures.append(what)
        print(f"FAILED {what}: {error:.3e} > {tolerance:.0e}")


def rotate(x, base):
    """Rotate-half as in GPT-NeoX: x[B,H,T,D]."""
    tokens, width = x.shape[-2:]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), rates)
    angles = torch.cat([angles, angles], -1)
    half = torch.cat([-x[..., width // 2:], x[..., :width // 2]], -1)
    return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)


class Attention(nn.Module):
    def __init__(self, hidden, heads, base):
        super().__init__()
        self.heads, self.base = heads, base
        self.c_attn = nn.Linear(hidden, 3 * hidden)
        self.c_proj = nn.Linear(hidden, hidden)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for y in self.c_attn(x).split(c, dim=2)
        )
        if self.base:
            q, k = rotate(q, self.base), rotate(k, self.base)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.c_fc = nn.Linear(hidden, ffn)
        self.c_proj = nn.Linear(ffn, hidden)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, m, ffn, base):
        super().__init__()
        self.ln_1 = nn.LayerNorm(m["hidden"], eps=m["epsilon"])
        self.attn = Attention(m["hidden"], m["heads"], base)
        self.ln_2 = nn.LayerNorm(m["hidden"], eps=m["epsilon"])
        self.mlp = Mlp(m["hidden"], ffn)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, m, weights):
        super().__init__()
        self.vocabulary = m["vocabulary"]
        self.wte = nn.Embedding(*weights["wte.weight"].shape)
        if "wpe.weight" in weights:
            self.wpe = nn.Embedding(*weights["wpe.weight"].shape)
        base = 0 if "wpe.weight" in weights else m["rotary_base"]
        ffn = weights["h.0.mlp.c_fc.weight"].shape[0]
        self.h = nn.ModuleList(Block(m, ffn, base) for _ in range(m["layers"]))
        self.ln_f = nn.LayerNorm(m["hidden"], eps=m["epsilon"])
        if "lm_head.weight" in weights:
            rows, columns = weights["lm_head.weight"].shape
            self.lm_head = nn.Linear(columns, rows, bias=False)

    def forward(self, ids, targets):
        x = self.wte(ids)
        if hasattr(self, "wpe"):
            x = x + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        head = self.lm_head.weight if hasattr(self, "lm_head") else self.wte.weight
        logits = F.linear(self.ln_f(x), head)[..., : self.vocabulary]
        return F.cross_entropy(logits.reshape(-1, self.vocabulary), targets.reshape(-1).long())


class Lamb(torch.optim.Optimizer):
    """You et al., arXiv:1904.00962, algorithm 2, with bias correction; as apex's FusedLAMB with use_nvlamb=False, the
    ratio of norms is taken for parameters with weight decay alone."""

    def __init__(self, groups, lr, betas, eps):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"] = beta1 * s["m"] + (1 - beta1) * p.grad
                s["v"] = beta2 * s["v"] + (1 - beta2) * p.grad * p.grad
                m, v = s["m"] / (1 - beta1 ** s["t"]), s["v"] / (1 - beta2 ** s["t"])
                update = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                # The padding of the vocabulary, which depends on the layout, does not count and stays.
                rows = group["rows"].get(p, p.shape[0])
                update[rows:] = 0
                norms = p[:rows].norm(), update.norm()
                ratio = norms[0] / norms[1] if group["weight_decay"] and norms[0] > 0 and norms[1] > 0 else 1
                p -= group["lr"] * ratio * update


def make_optimizer(kind, named, o, vocabulary):
    decayed = [p for _, p in named if p.dim() >= 2]
    rest = [p for _, p in named if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": o["weight_decay"]},
              {"params": rest, "weight_decay": 0.0}]
    if kind == "lamb":
        padded = ("wte.weight", "lm_head.weight", "embeddings.word_embeddings.weight", "cls.predictions.bias")
        rows = {p: vocabulary for n, p in named if n in padded}
        groups = [{**g, "rows": rows} for g in groups]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=o["momentum"])
    return {"adam": torch.optim.AdamW, "lamb": Lamb}[kind](groups, lr=1.0, betas=(o["beta1"], o["beta2"]),
                                                           eps=o["epsilon"])


def scheduled(o, samples):
    """Linear warm-up, then cosine to the minimum."""
    if samples <= o["warmup"]:
        return o["lr"] * samples / o["warmup"]
    ratio = (samples - o["warmup"]) / (o["decay"] - o["warmup"])
    return o["min_lr"] + (o["lr"] - o["min_lr"]) * 0.5 * (1 + math.cos(math.pi * ratio))


def compare_gpt(tool, precision, variant):
    what = " ".join((precision, *variant))
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([tool, "gpt", precision, *variant, directory], check=True)
        manifest, arrays = read(pathlib.Path(directory))
    f64 = precision == "f64"
    tolerance = 1e-10 if f64 else 1e-5
    weights = part(arrays, "weight")
    model = Gpt(manifest, weights).to(torch.float64 if f64 else torch.float32)
    missing = model.load_state_dict(weights)
    assert not missing.missing_keys and not missing.unexpected_keys
    gradients = part(arrays, "gradient")
    o = manifest["optimizer"]
    optimizer = make_optimizer("adam", list(model.named_parameters()), o, manifest["vocabulary"])
    for step, ours in enumerate(manifest["steps"]):
        loss = 0
        for i in range(2):
            micro = model(arrays[f"ids {step} {i}"], arrays[f"targets {step} {i}"]) / 2
            micro.backward()
            loss += micro.item()
        if step == 0:
            for name, p in model.named_parameters():
                check(f"{what}: gradient of {name}", relative(gradients[name], p.grad), tolerance)
        norm = nn.utils.clip_grad_norm_(model.parameters(), o["clip"]).item()
        lr = scheduled(o, ours["samples"])
        check(f"{what}: learning rate of step {step}", abs(ours["lr"] - lr), 1e-15)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        optimizer.zero_grad()
        check(f"{what}: loss of step {step}", abs(ours["loss"] - loss) / loss,
              tolerance if f64 else 1e-6 if step == 0 else 1e-5)
        check(f"{what}: gradient norm of step {step}", abs(ours["norm"] - norm) / norm, 1e-4)
    trained = part(arrays, "trained")
    for name, p in model.named_parameters():
        # In float32 Adam turns the rounding noise of gradients that are zero into steps of lr.
        check(f"{what}: {name} after training", relative(trained[name], p.detach()),
              1e-9 if f64 else 5e-3)


def apart(tensors, model, m):
    """The parameters of transformers' model: Llama and BERT have Q, K and V apart, Llama gate and up too."""
    found = {}
    for name, tensor in tensors.items():
        rows = tensor.shape[0]
        sizes = [rows]
        if model == "llama" and name.endswith("c_attn.weight"):
            sizes = [rows - 2 * m["kv_width"], m["kv_width"], m["kv_width"]]
        if model == "llama" and name.endswith("c_fc.weight"):
            sizes = [rows // 2, rows // 2]
        if model == "bert" and ".qkv." in name:
            sizes = [rows // 3] * 3
        for i, one in enumerate(tensor.split(sizes)):
            found[f"{name} {i}" if len(sizes) > 1 else name] = one.clone()
    return found


def compare_optimizer(tool, kind, precision, model="gpt"):
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([tool, "optimizer", kind, precision, model, directory], check=True)
        manifest, arrays = read(pathlib.Path(directory))
    f64 = precision == "f64"
    named = [(n, nn.Parameter(w)) for n, w in apart(part(arrays, "weight"), model, manifest).items()]
    o = manifest["optimizer"]
    optimizer = make_optimizer(kind, named, o, manifest["vocabulary"])
    clipped = 0
    for step, ours in enumerate(manifest["steps"]):
        gradients = apart(part(arrays, f"gradient {step}"), model, manifest)
        for name, p in named:
            p.grad = gradients[name]
        norm = nn.utils.clip_grad_norm_([p for _, p in named], o["clip"]).item()
        clipped += norm > o["clip"]
        check(f"{kind} {precision}: norm of step {step}", abs(ours["norm"] - norm) / norm, 1e-6)
        for group in optimizer.param_groups:
            group["lr"] = ours["lr"]
        optimizer.step()
    assert 0 < clipped < len(manifest["steps"]), "the test is to clip some steps and not others"
    trained = apart(part(arrays, "trained"), model, manifest)
    for name, p in named:
        check(f"{kind} {precision} {model}: {name}", relative(trained[name], p.detach()),
              1e-12 if f64 else 1e-6)


def main():
    tool = sys.argv[1]
    variants = [
        ("learned", "tied", "explicit", "none"),
        ("learned", "own", "explicit", "selective"),
        ("rotary", "tied", "explicit", "full"),
        ("rotary", "own", "explicit", "none"),
        ("learned", "tied", "reference", "none"),
        ("rotary", "own", "reference", "none"),
    ]
    for precision in ("f64", "f32"):
        for variant in variants:
            compare_gpt(tool, precision, variant)
        for kind in ("adam", "lamb", "sgd"):
            compare_optimizer(tool, kind, precision)
        for model in ("llama", "bert"):
            compare_optimizer(tool, "lamb", precision, model)
    print(f"{len(failures)} differences" if failures else "equal to PyTorch")
    return bool(failures)


sys.exit(main())
