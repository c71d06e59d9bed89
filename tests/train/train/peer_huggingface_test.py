"""tally-train and transformers on the same GPT-2: weights, logits, losses, tokenizer, in both directions.

    peer_huggingface_test.py TALLY_TRAIN SOURCE_DIRECTORY
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
tool, root = sys.argv[1], sys.argv[2]
try:
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
except ImportError as error:
    print(f"SKIPPED: {error} (scripts/setup --tests provides transformers)")
    sys.exit(77)

torch.set_num_threads(1)
SEQUENCE = 32


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


def random_model(seed, vocabulary, tied=True, dtype=torch.float32, **more):
    """Not the tiny initial values of GPT-2: every bias and norm counts."""
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=vocabulary, n_positions=SEQUENCE, n_embd=48, n_layer=3, n_head=4, bos_token_id=0,
                        eos_token_id=0, tie_word_embeddings=tied, **more)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.add_(torch.randn_like(p) * (0.15 if p.ndim > 1 else 0.3))
    return model.to(dtype)


def run(*flags, code=0):
    done = subprocess.run([tool, *flags], capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(flags)}\n{done.stdout}{done.stderr}")
    return done


def evaluate(work, *flags):
    record = os.path.join(work, "evaluation.json")
    done = run("evaluate", "--device", "cpu", "--record", record, *flags)
    with open(record, encoding="utf-8") as f:
        results = json.load(f)["results"]
    check(f"loss: {results['loss']:.6E} | perplexity: {results['perplexity']:.6E}" in done.stdout,
          "the printed line has the record's numbers")
    return results


def expected_loss(model, tokens, stride):
    """Every token but the first once, in the first block that reaches it: as transformers' guide to perplexity."""
    total, scored = 0.0, 0
    for begin in range(0, len(tokens), stride):
        inputs, targets = tokens[begin:begin + SEQUENCE], tokens[begin + 1:begin + SEQUENCE + 1]
        with torch.no_grad():
            logits = model(torch.tensor([inputs])).logits[0][:len(targets)]
        losses = torch.nn.functional.cross_entropy(logits.double(), torch.tensor(targets), reduction="none")
        new = begin + len(targets) - scored
        total += losses[len(targets) - new:].sum().item()
        scored += new
        if scored == len(tokens) - 1:
            return total / scored


def expected_accuracy(model, tokens):
    """In blocks one after the other, as run_clm.py counts."""
    right = 0
    for begin in range(0, len(tokens), SEQUENCE):
        inputs, targets = tokens[begin:begin + SEQUENCE], tokens[begin + 1:begin + SEQUENCE + 1]
        with torch.no_grad():
            predictions = model(torch.tensor([inputs])).logits[0][:len(targets)].argmax(-1)
        right += (predictions == torch.tensor(targets)).sum().item()
    return right / (len(tokens) - 1)


def close(a, b, tolerance, what):
    check(abs(a - b) <= tolerance * max(1, abs(b)), f"{what}: {a!r} and {b!r} within {tolerance}")


def same_logits(a, b, tokens, tolerance, what):
    ids = torch.tensor([tokens[:SEQUENCE]])
    with torch.no_grad():
        difference = (a(ids).logits - b(ids).logits).abs().max().item()
    check(difference <= tolerance, f"{what}: logits differ by {difference} at most {tolerance}")


def load(folder):
    model, info = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True, dtype="auto")
    check(not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")),
          "transformers finds every weight and no other")
    return model.eval()


with tempfile.TemporaryDirectory() as work:
    at = lambda name: os.path.join(work, name)  # noqa: E731
    text = open(os.path.join(root, "CONTRIBUTING.md"), encoding="utf-8").read()[:700] + " déjà vu"
    tokens = list(text.encode("utf-8"))
    with open(at("text.txt"), "w", encoding="utf-8", newline="") as f:
        f.write(text)
    by_text = ["--text", at("text.txt"), "--tokenizer-type", "bytes"]
    run("prepare", "--tokenizer-type", "bytes", "--input", at("text.txt"), "--output", at("corpus"))

    # Theirs, evaluated here. 257 and 301 tokens: rows of padding on our side.
    for seed, (vocabulary, tied, dtype, flags, tolerance) in enumerate([
            (257, True, torch.float32, [], 1e-5), (301, False, torch.float32, [], 1e-5),
            (257, True, torch.float64, ["--fp64"], 1e-10), (257, False, torch.float64, ["--fp64"], 1e-10)]):
        model = random_model(seed, vocabulary, tied, dtype)
        folder = at(f"theirs{seed}")
        model.save_pretrained(folder, **({"max_shard_size": "60KB"} if seed % 2 else {}))
        check(os.path.exists(os.path.join(folder, "model.safetensors.index.json")) == bool(seed % 2), "shards or none")
        for stride in (SEQUENCE, 7):
            got = evaluate(work, "--load-hf", folder, *by_text, *flags, "--stride", str(stride), "--micro-batch-size",
                           "3")
            close(got["loss"], expected_loss(model, tokens, stride), tolerance,
                  f"loss of theirs ({vocabulary}, tied {tied}, {dtype}, stride {stride})")
            check(got["scored_tokens"] == len(tokens) - 1, "every token but the first is scored")
        dataset = evaluate(work, "--load-hf", folder, "--data-path", at("corpus"), "--micro-batch-size", "3",
                           "--stride", "7", *flags)
        check(dataset["loss"] == got["loss"], "the dataset of the same text has the same loss")

        # Through us and back: nothing changes at a learning rate of 0.
        back = at(f"back{seed}")
        train = ["--load-hf", folder, "--data-path", at("corpus"), "--split", "1", "--device", "cpu", "--save-hf"]
        run(*train, back, "--train-iters", "1", "--lr", "0", *flags)
        same_logits(load(back), model, tokens, 0, f"theirs through us ({vocabulary}, tied {tied}, {dtype})")
        saved = json.load(open(os.path.join(back, "config.json"), encoding="utf-8"))
        check(saved["vocab_size"] == vocabulary and saved["tie_word_embeddings"] == tied, "config.json comes back")
        theirs = json.load(open(os.path.join(folder, "config.json"), encoding="utf-8"))
        check({k: saved.get(k) for k in theirs if k != "n_inner"} == {k: v for k, v in theirs.items() if k != "n_inner"},
              "with all that it said")

        # Trained by us, run by them; evaluated by us from both places.
        trained = at(f"trained{seed}")
        run(*train, trained, "--train-iters", "5", "--lr", "1e-2", "--save", at(f"checkpoint{seed}"), *flags)
        ours = load(trained)
        want = expected_loss(ours, tokens, SEQUENCE)
        check(want < expected_loss(model, tokens, SEQUENCE) - 0.1, "training has helped")
        got = evaluate(work, "--load-hf", trained, *by_text, *flags)
        close(got["loss"], want, tolerance, "loss of ours, in transformers and here")
        accuracy = expected_accuracy(ours, tokens)
        check(0 < accuracy < 1 and got["accuracy"] == accuracy, f"accuracy of ours: {got['accuracy']} and {accuracy}")
        shared = evaluate(work, "--load-hf", trained, *by_text, *flags, "--nproc-per-node", "2", "--micro-batch-size", "3")
        check(shared["accuracy"] == accuracy, f"accuracy of two processes: {shared['accuracy']}")
        again = evaluate(work, "--load", at(f"checkpoint{seed}"), *by_text, *flags)
        check(again["loss"] == got["loss"], "--load of the checkpoint evaluates the same model")
        # The training goes on, and its model takes the older one's place.
        run(*train, trained, "--train-iters", "6", "--lr", "1e-2", "--load", at(f"checkpoint{seed}"), *flags)
        check(expected_loss(load(trained), tokens, SEQUENCE) < want, "a model's folder is replaced")

    # bf16: ours saved in bf16 is what transformers computes with, whatever its type.
    run("--load-hf", at("theirs0"), "--data-path", at("corpus"), "--split", "1", "--device", "cpu", "--save-hf",
        at("bf16"), "--train-iters", "2", "--lr", "1e-3", "--bf16")
    ours = load(at("bf16"))
    check(ours.dtype == torch.bfloat16, "bf16 weights stay bf16")
    got = evaluate(work, "--load-hf", at("bf16"), *by_text)
    close(got["loss"], expected_loss(ours.float(), tokens, SEQUENCE), 1e-5, "loss of the bf16 weights in fp32")

    # GPT-2's tokenizer, read from the folder and written to it.
    vocab = os.environ.get("TALLY_TEST_VOCAB", os.path.join(root, ".deps", "vocab"))
    files = [os.path.join(vocab, name) for name in ("vocab.json", "merges.txt")]
    if all(map(os.path.exists, files)):
        model = random_model(9, 50257)
        model.save_pretrained(at("gpt2"))
        by_files = ["--vocab-file", files[0], "--merge-file", files[1]]
        run("prepare", "--input", at("text.txt"), "--output", at("bpe"), *by_files)
        unchanged = ["--data-path", at("bpe"), "--split", "1", "--device", "cpu", "--train-iters", "1", "--lr", "0",
                     "--seq-length", "8"]
        run("--load-hf", at("gpt2"), *unchanged, *by_files, "--save-hf", at("gpt2-ours"))
        tokenizer = AutoTokenizer.from_pretrained(at("gpt2-ours"))
        ids = tokenizer(text)["input_ids"]
        check(tokenizer.decode(ids) == text and tokenizer.eos_token_id == 50256,
              "transformers reads the tokenizer's files")
        got = evaluate(work, "--load-hf", at("gpt2-ours"), "--text", at("text.txt"))
        close(got["loss"], expected_loss(model, ids, SEQUENCE), 1e-5, "loss with the folder's own tokenizer")
        check(got["tokens"] == len(ids), "as many tokens as transformers' tokenizer gives")
        # And onwards: the folder's files travel with the model.
        run("--load-hf", at("gpt2-ours"), *unchanged, "--save-hf", at("gpt2-next"))
        check(AutoTokenizer.from_pretrained(at("gpt2-next"))(text)["input_ids"] == ids, "the tokenizer travels")
        # tokenizer.json alone, which is what transformers 5 saves.
        model.save_pretrained(at("gpt2-json"))
        tokenizer.save_pretrained(at("gpt2-json"))
        for name in ("vocab.json", "merges.txt"):
            if os.path.exists(os.path.join(at("gpt2-json"), name)):
                os.remove(os.path.join(at("gpt2-json"), name))
        check(os.path.exists(os.path.join(at("gpt2-json"), "tokenizer.json")), "transformers saves tokenizer.json")
        got = evaluate(work, "--load-hf", at("gpt2-json"), "--text", at("text.txt"))
        close(got["loss"], expected_loss(model, ids, SEQUENCE), 1e-5, "loss with tokenizer.json")
        run("prepare", "--input", at("text.txt"), "--output", at("json"), "--vocab-file",
            os.path.join(at("gpt2-json"), "tokenizer.json"))
        check(open(at("json.bin"), "rb").read() == open(at("bpe.bin"), "rb").read(), "prepare reads it, too")
        run("--load-hf", at("gpt2-json"), *unchanged, "--save-hf", at("gpt2-json-next"))
        check(AutoTokenizer.from_pretrained(at("gpt2-json-next"))(text)["input_ids"] == ids, "it travels")
    else:
        print("SKIPPED: GPT-2's tokenizer, since " + " and ".join(files) + " are missing")

    # What is wrong with a folder is one sentence, before anything is done.
    def refused(sentence, *flags, change=None, command="evaluate"):
        folder = at("broken")
        subprocess.run(["rm", "-rf", folder], check=True)
        random_model(0, 257).save_pretrained(folder)
        if change:
            change(folder)
        more = by_text if command == "evaluate" else ["--data-path", at("corpus"), "--split", "1", "--train-iters", "1"]
        done = run(command, "--device", "cpu", "--load-hf", folder, *more, *flags, code=2)
        check(done.stdout == "" and done.stderr.count("\n") == 1 and sentence in done.stderr,
              f"refused: {done.stderr.strip()}")

    def edit(**changes):
        def change(folder):
            path = os.path.join(folder, "config.json")
            config = json.load(open(path, encoding="utf-8"))
            for key, value in changes.items():
                if value is None:
                    config.pop(key)
                else:
                    config[key] = value
            json.dump(config, open(path, "w", encoding="utf-8"))
        return change

    def cut(folder):
        path = os.path.join(folder, "model.safetensors")
        os.truncate(path, os.path.getsize(path) - 4)

    def header(folder):
        with open(os.path.join(folder, "model.safetensors"), "r+b") as f:
            f.write(struct.pack("<Q", 1 << 40))

    refused('has no positive "n_layer"', change=edit(n_layer=None))
    refused('has no "model_type"', change=edit(model_type=None))
    refused('describes a model of type "bloom"', change=edit(model_type="bloom"))
    refused("which is not one of the supported: gelu_new, gelu", change=edit(activation_function="relu"))
    refused("'transformer.wte.weight' has the shape [257, 48], and [300, 48] is needed", change=edit(vocab_size=300))
    refused("'h.3.ln_1.weight' is missing", change=edit(n_layer=4))
    refused("does not belong to it", change=edit(n_layer=2))
    refused("model.safetensors", change=cut)
    refused("model.safetensors", change=header)
    refused("config.json", change=lambda folder: os.remove(os.path.join(folder, "config.json")))
    refused("model.safetensors", change=lambda folder: os.remove(os.path.join(folder, "model.safetensors")))
    def untie(folder):
        import safetensors.torch
        path = os.path.join(folder, "model.safetensors")
        weights = safetensors.torch.load_file(path)
        weights["lm_head.weight"] = weights["transformer.wte.weight"] + 1
        safetensors.torch.save_file(weights, path)

    refused("'lm_head.weight' differs from 'transformer.wte.weight'", change=untie)
    refused("has the attn_pdrop 1.5, which is not in [0, 1)", change=edit(attn_pdrop=1.5))
    refused("embd_pdrop and resid_pdrop, and there is one hidden dropout here: give --hidden-dropout",
            change=edit(embd_pdrop=0.3), command="train")
    refused("--num-layers: 12 contradicts", "--num-layers", "12")
    refused("--seq-length", "--seq-length", "64")
    refused("--save-hf: has a meaning in training only", "--save-hf", at("x"))
    refused("--save-hf: '" + work + "' holds files but no config.json", "--save-hf", work, command="train")
    refused("--vocab-size: 300 contradicts", "--vocab-size", "300", command="train")
print("transformers and tally-train agree")
