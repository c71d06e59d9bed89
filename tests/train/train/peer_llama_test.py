"""tally-train and transformers on the same Llama, Mistral, Qwen 2 and Qwen 3: weights, logits and losses, in both directions.

    peer_llama_test.py TALLY_TRAIN SOURCE_DIRECTORY
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
tool = sys.argv[1]
try:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError as error:
    print(f"SKIPPED: {error} (scripts/setup --tests provides transformers)")
    sys.exit(77)

torch.set_num_threads(1)
SEQUENCE, VOCABULARY = 32, 257
LLAMA_3_1 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 16}


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


def random_model(seed, tied, dtype=torch.float32, kind="llama", **more):
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, **{
        "vocab_size": VOCABULARY, "max_position_embeddings": SEQUENCE, "hidden_size": 48, "intermediate_size": 72,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 0,
        "eos_token_id": 0, "tie_word_embeddings": tied, "rms_norm_eps": 1e-5, **more})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * (0.1 if p.ndim > 1 else 0.3))
    return model.to(dtype)


def run(*flags, code=0):
    done = subprocess.run([tool, *flags], capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(flags)}\n{done.stdout}{done.stderr}")
    return done


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype="auto",
                                                   attn_implementation="eager")
    check(not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")),
          "transformers finds every weight and no other")
    return model.eval()


def loss_of(model, tokens):
    total, count = 0.0, 0
    for begin in range(0, len(tokens) - 1, SEQUENCE):
        inputs, targets = tokens[begin:begin + SEQUENCE], tokens[begin + 1:begin + SEQUENCE + 1]
        with torch.no_grad():
            logits = model(torch.tensor([inputs])).logits[0][:len(targets)]
        total += torch.nn.functional.cross_entropy(logits.double(), torch.tensor(targets), reduction="sum").item()
        count += len(targets)
    return total / count


with tempfile.TemporaryDirectory() as work:
    at = lambda name: os.path.join(work, name)  # noqa: E731
    text = "It is a truth universally acknowledged, that a text of some length is needed here. " * 8
    tokens = list(text.encode("utf-8"))
    with open(at("text.txt"), "w", encoding="utf-8", newline="") as f:
        f.write(text)
    run("prepare", "--tokenizer-type", "bytes", "--input", at("text.txt"), "--output", at("corpus"))
    data = ["--data-path", at("corpus"), "--split", "1", "--device", "cpu"]

    def evaluate(folder, *flags, by="--load-hf"):
        run("evaluate", "--device", "cpu", "--text", at("text.txt"), "--tokenizer-type", "bytes", by, folder,
            "--record", at("evaluation.json"), *flags)
        return json.load(open(at("evaluation.json"), encoding="utf-8"))["results"]["loss"]

    # Heads that do not add up to the width, and those of the default; another base.
    for seed, (tied, dtype, flags, tolerance, more) in enumerate([
            (True, torch.float32, [], 1e-5, {}),
            (False, torch.float32, [], 1e-5, {"head_dim": 16, "rope_theta": 500.0}),
            (False, torch.float64, ["--fp64"], 1e-6, {"num_key_value_heads": 1}),
            # Llama 3.1: of the rotations here some are stretched, some are not, and some are between both.
            (False, torch.float64, ["--fp64"], 1e-6, {"head_dim": 16, "rope_parameters": LLAMA_3_1}),
            (True, torch.float32, [], 1e-5, {"kind": "mistral", "sliding_window": None}),
            (False, torch.float32, [], 1e-5, {"kind": "qwen2"}),
            (False, torch.float64, ["--fp64"], 1e-6, {"kind": "qwen3", "head_dim": 16}),
            (True, torch.float32, [], 1e-5, {"kind": "qwen3", "head_dim": 16, "num_key_value_heads": 1})]):
        model, folder = random_model(seed, tied, dtype, **more), at(f"theirs{seed}")
        model.save_pretrained(folder)
        got, want = evaluate(folder, *flags), loss_of(model, tokens)
        check(abs(got - want) <= tolerance * want, f"loss of theirs: {got!r} and {want!r}")
        train = ["--load-hf", folder, *data, "--hidden-dropout", "0", "--attention-dropout", "0", *flags]
        run(*train, "--train-iters", "1", "--lr", "0", "--save-hf", at(f"back{seed}"))
        back = load(at(f"back{seed}"))
        same = all(torch.equal(a, b) for a, b in zip(back.state_dict().values(), model.state_dict().values()))
        ids = torch.tensor([tokens[:SEQUENCE]])
        with torch.no_grad():
            difference = (back(ids).logits - model(ids).logits).abs().max().item()
        check(same and difference == 0, "theirs through us has the same weights and logits")
        run(*train, "--train-iters", "5", "--lr", "1e-2", "--save-hf", at(f"trained{seed}"), "--save",
            at(f"checkpoint{seed}"))
        want = loss_of(load(at(f"trained{seed}")), tokens)
        check(want < loss_of(model, tokens) - 0.1, "training has helped")
        got = evaluate(at(f"trained{seed}"), *flags)
        check(abs(got - want) <= tolerance * want, f"loss of ours, here and in transformers: {got!r} and {want!r}")
        check(evaluate(at(f"checkpoint{seed}"), *flags, by="--load") == got, "--load evaluates the same model")
        kind = json.load(open(os.path.join(at(f"trained{seed}"), "config.json"), encoding="utf-8"))["model_type"]
        check(kind == more.get("kind", "llama"), f"it is still a {kind}")

    # The base of the rotary angles, wherever config.json has it: what transformers makes of the same file.
    plain = {"rope_type": "default"}
    bases = set()
    for top, parameters, scaling in [
            (100.0, {**plain, "rope_theta": 10000.0}, None), (None, {**plain, "rope_theta": 300.0}, None),
            (100.0, plain, None), (100.0, None, None), (None, None, None), (100.0, {}, {}),
            (100.0, {**plain, "rope_theta": 300.0}, {"type": "default", "rope_theta": 50.0}),
            (100.0, {**plain, "rope_theta": 300.0}, {"type": "default"}),
            (None, {"rope_type": "linear", "factor": 2.0}, {"rope_type": "default", "rope_theta": 70.0}),
            (None, {**plain, "rope_theta": 300.0, "partial_rotary_factor": 1.0}, None),
            (None, LLAMA_3_1, None), (300.0, None, {k: v for k, v in LLAMA_3_1.items() if k != "rope_theta"})]:
        folder = at("rotary")
        subprocess.run(["rm", "-rf", folder, at("rotary_back")], check=True)
        random_model(0, True).save_pretrained(folder)
        path = os.path.join(folder, "config.json")
        config = json.load(open(path, encoding="utf-8"))
        for key, value in [("rope_theta", top), ("rope_parameters", parameters), ("rope_scaling", scaling)]:
            config.pop(key, None)
            if value is not None:
                config[key] = value
        json.dump(config, open(path, "w", encoding="utf-8"))
        model = load(folder)
        bases.add(model.config.rope_parameters["rope_theta"])
        got, want = evaluate(folder), loss_of(model, tokens)
        check(abs(got - want) <= 1e-5 * want, f"{top} {parameters} {scaling}: {got!r} and transformers' {want!r}")
        run("--load-hf", folder, *data, "--train-iters", "1", "--lr", "0", "--save-hf", at("rotary_back"))
        check(abs(loss_of(load(at("rotary_back")), tokens) - want) <= 1e-5 * want, f"{top} {parameters} {scaling}: back")
    check(bases == {10000.0, 300.0, 100.0, 50.0, 70.0}, f"the bases differ: {bases}")

    # What config.json leaves out is what transformers takes for it: heads of 128 dimensions, 8 query groups.
    for kind, key, more in [("qwen3", "head_dim", {}),
                            ("mistral", "num_key_value_heads", {"hidden_size": 96, "num_attention_heads": 16,
                                                                "num_key_value_heads": 8, "sliding_window": None})]:
        folder = at("left_out_" + kind)
        random_model(8, True, kind=kind, **more).save_pretrained(folder)
        path = os.path.join(folder, "config.json")
        config = json.load(open(path, encoding="utf-8"))
        del config[key]
        json.dump(config, open(path, "w", encoding="utf-8"))
        got, want = evaluate(folder), loss_of(load(folder), tokens)
        check(abs(got - want) <= 1e-5 * want, f"{kind} without {key}: {got!r} and transformers' {want!r}")

    # From random weights, by flags.
    blocks = ["--num-layers", "2", "--hidden-size", "48", "--num-attention-heads", "4", "--seq-length", str(SEQUENCE), "--swiglu",
              "--normalization", "RMSNorm", "--disable-bias-linear", "--position-embedding-type", "rope", "--tokenizer-type",
              "bytes", "--init-method-std", "0.2", "--hidden-dropout", "0", "--attention-dropout", "0"]
    for kind, flags in [("llama", ["--use-rope-scaling", "--rope-original-max-position-embeddings", "16"]),
                        ("qwen2", ["--add-qkv-bias"]), ("qwen3", ["--qk-layernorm", "--use-rope-scaling"])]:
        folder, kept = at("made_" + kind), at("kept_" + kind)
        run(*blocks, *flags, *data, "--train-iters", "3", "--lr", "1e-2", "--save-hf", folder, "--save", kept)
        model = load(folder)
        got, want = evaluate(folder), loss_of(model, tokens)
        check(model.config.model_type == kind and abs(got - want) <= 1e-5 * want, f"made by {flags}: {got!r}, {want!r}")
        check(evaluate(kept, by="--load") == got, "--load evaluates the same model")

    # Two shards of two stages read their parts and write the file together.
    parts = ["--nproc-per-node", "4", "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"]
    run(*parts, "--load-hf", at("theirs1"), *data, "--train-iters", "1", "--lr", "0", "--hidden-dropout", "0",
        "--save-hf", at("parts"))
    check(open(os.path.join(at("parts"), "model.safetensors"), "rb").read() ==
          open(os.path.join(at("back1"), "model.safetensors"), "rb").read(), "four processes write the same file")

    def refused(sentence, *flags, kind="llama", without=(), **changes):
        folder = at("broken")
        subprocess.run(["rm", "-rf", folder], check=True)
        random_model(0, True, kind=kind).save_pretrained(folder)
        path = os.path.join(folder, "config.json")
        config = json.load(open(path, encoding="utf-8"))
        config.update(changes)
        for key in without:
            config.pop(key)
        json.dump(config, open(path, "w", encoding="utf-8"))
        done = run("--load-hf", folder, *data, "--train-iters", "1", *flags, code=2)
        check(done.stdout == "" and done.stderr.count("\n") == 1 and sentence in done.stderr,
              f"refused: {done.stderr.strip()}")

    refused('without a positive number "low_freq_factor"', rope_parameters={"rope_type": "llama3", "factor": 8.0,
                                                                            "rope_theta": 10000.0})
    refused("not above low_freq_factor", rope_parameters={**LLAMA_3_1, "low_freq_factor": 4.0})
    refused("rotary positions are scaled here as Llama 3.1's", rope_scaling={"type": "linear", "factor": 2.0})
    refused("rotary positions are scaled here as Llama 3.1's",
            rope_parameters={"full_attention": {"rope_type": "default"}})
    refused("has windows", kind="mistral", sliding_window=4096)
    refused("has windows", kind="mistral", without=["sliding_window"])
    refused("has windows", kind="qwen2", use_sliding_window=True, sliding_window=8)
    refused("has windows", kind="qwen3", use_sliding_window=True, without=["sliding_window"])
    refused("--rope-scaling-factor: goes with --use-rope-scaling", "--rope-scaling-factor", "16")
    refused("--add-qkv-bias: contradicts", "--add-qkv-bias", kind="qwen3")
    refused("only full_attention is supported", layer_types=["full_attention", "sliding_attention"] * 2)
    refused("--qk-layernorm: contradicts", "--qk-layernorm")
    refused("--use-rope-scaling: contradicts", "--use-rope-scaling")
    refused('describes a model of type "gemma"', model_type="gemma")
    refused("has a partial_rotary_factor", rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5})
    refused("has a partial_rotary_factor", partial_rotary_factor=0.5)
    refused('has "attention_bias": true, which is not supported', attention_bias=True)
    refused("which is not one of the supported: silu", hidden_act="gelu")
    refused("has 4 heads, which num_key_value_heads 3 does not divide", num_key_value_heads=3)
    refused("'layers.4.input_layernorm.weight' is missing", num_hidden_layers=5)
    refused("--num-query-groups: 4 contradicts", "--num-query-groups", "4")
    refused("--normalization: LayerNorm contradicts", "--normalization", "LayerNorm")
    refused("num_query_groups (2) must be a multiple of tensor_model_parallel_size (4).", "--nproc-per-node", "4",
            "--tensor-model-parallel-size", "4")
print("transformers and tally-train agree")
