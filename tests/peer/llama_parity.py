"""Our Llama's loss and gradients against transformers' LlamaForCausalLM on the same weights.

usage: llama_parity.py PEER_DUMP     (tests/train/model/peer_dump.cc)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --tests provides transformers)")
    sys.exit(77)

torch.set_num_threads(1)
BLOCK = {"ln_1": "input_layernorm", "ln_2": "post_attention_layernorm", "attn.c_proj": "self_attn.o_proj",
         "mlp.c_proj": "mlp.down_proj"}


def theirs(name, tensor, m):
    """The tensors of LlamaForCausalLM that one of ours holds."""
    whole = {"wte.weight": "model.embed_tokens.weight", "ln_f.weight": "model.norm.weight"}
    if not name.startswith("h."):
        return {whole.get(name, name): tensor}
    _, layer, part = name.removesuffix(".weight").split(".", 2)
    block = f"model.layers.{layer}."
    if part in BLOCK:
        return {f"{block}{BLOCK[part]}.weight": tensor}
    if part == "mlp.c_fc":
        names, sizes = ("mlp.gate_proj", "mlp.up_proj"), (m["ffn"], m["ffn"])
    else:
        names, sizes = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), (
            m["heads"] * m["head_dim"], m["groups"] * m["head_dim"], m["groups"] * m["head_dim"])
    return {f"{block}{n}.weight": t for n, t in zip(names, tensor.split(sizes))}


def compare(tool, precision, loss_tolerance, tolerance):
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([tool, "llama", precision, directory], check=True)
        manifest = json.loads((pathlib.Path(directory) / "manifest.json").read_text())
        arrays = {name: torch.from_numpy(numpy.fromfile(os.path.join(directory, a["file"]), a["type"])
                                         .reshape(a["shape"]).copy()) for name, a in manifest["arrays"].items()}
    weights, gradients = {}, {}
    for name, tensor in arrays.items():
        for prefix, found in (("weight ", weights), ("gradient ", gradients)):
            if name.startswith(prefix):
                found.update(theirs(name.removeprefix(prefix), tensor, manifest))
    vocabulary = weights["lm_head.weight"].shape[0]
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocabulary, hidden_size=manifest["hidden"], intermediate_size=manifest["ffn"],
        num_hidden_layers=manifest["layers"], num_attention_heads=manifest["heads"],
        num_key_value_heads=manifest["groups"], head_dim=manifest["head_dim"], rms_norm_eps=manifest["epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": manifest["rotary_base"]}, attention_dropout=0.0,
        tie_word_embeddings=False, attn_implementation="eager"))
    model.to(torch.float64 if precision == "f64" else torch.float32).load_state_dict(weights)
    logits = model(arrays["ids"].long()).logits[..., :manifest["vocabulary"]]  # without the padding
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), arrays["targets"].flatten().long())
    loss.backward()
    errors = {"loss": abs(manifest["loss"] - loss.item()) / loss.item() / loss_tolerance * tolerance}
    for name, p in model.named_parameters():
        errors[name] = ((gradients[name] - p.grad).norm() / p.grad.norm()).item()
    worst = max(errors, key=errors.get)
    print(f"{precision}: loss {loss.item():.6f}, worst error {errors[worst]:.2e} of {worst}")
    return [f"{precision} {name}: {e:.3e}" for name, e in errors.items() if not e <= tolerance]


# transformers takes the norms and the rotary angles in float32 whatever the weights' type.
failures = compare(sys.argv[1], "f32", 1e-5, 1e-4) + compare(sys.argv[1], "f64", 1e-6, 1e-5)
print("\n".join(failures) or "equal to transformers")
sys.exit(bool(failures))
