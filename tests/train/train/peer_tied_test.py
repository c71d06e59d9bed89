"""Files that have one of a model's tied weights alone, under either name, as safetensors.torch.save_model() writes them.
transformers says which weights a folder has.

    peer_tied_test.py TALLY_TRAIN SOURCE_DIRECTORY
"""
import os
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers as hf
    from safetensors.torch import load_file, save_file, save_model
except ImportError as error:
    print(f"SKIPPED: {error} (scripts/setup --tests provides transformers)")
    sys.exit(77)

tool = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(1)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SIZES = {"vocab_size": 120, "max_position_embeddings": 32, "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 2, "num_attention_heads": 2}
# The model, its embedding and its output layer.
MODELS = [
    (hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=120, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
                                      eos_token_id=0, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)),
     "transformer.wte.weight", "lm_head.weight"),
    (hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, tie_word_embeddings=True)), "model.embed_tokens.weight",
     "lm_head.weight"),
    (hf.BertForMaskedLM(hf.BertConfig(**SIZES, **NO_DROPOUT)), "bert.embeddings.word_embeddings.weight",
     "cls.predictions.decoder.weight"),
    (hf.BertForPreTraining(hf.BertConfig(**SIZES, **NO_DROPOUT)), "bert.embeddings.word_embeddings.weight",
     "cls.predictions.decoder.weight"),
    (hf.DistilBertForMaskedLM(hf.DistilBertConfig(vocab_size=120, max_position_embeddings=32, dim=32, hidden_dim=64,
                                                  n_layers=2, n_heads=2, dropout=0.0, attention_dropout=0.0)),
     "distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight")]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


def train(folder, encoder, *more):
    task = ["--task", "pretrain"] if encoder else []
    return subprocess.run([tool, "--load-hf", folder, *task, "--mock-data", "--device", "cpu", "--seq-length", "32",
                           "--micro-batch-size", "2", "--train-iters", "2", "--lr", "1e-3", "--log-interval", "1", *more],
                          capture_output=True, text=True, timeout=300)


def losses(folder, encoder, *more):
    done = train(folder, encoder, *more)
    if done.returncode:
        sys.exit(f"FAILED: exit code {done.returncode}: {folder}: {done.stderr}")
    found = re.findall(r"lm loss: (\S+)", done.stdout)
    if len(found) != 2:
        sys.exit(f"FAILED: {done.stdout}")
    return found


def folder_of(work, model, name, weights=None):
    folder = os.path.join(work, f"{type(model).__name__}-{name}")
    model.save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    if weights is None:
        save_model(model, path)
    else:
        save_file(weights, path, {"format": "pt"})
    return folder


for model, embedding, head in MODELS:
    kind, encoder = type(model).__name__, embedding.startswith(("bert.", "distilbert."))
    with tempfile.TemporaryDirectory() as work:
        model.save_pretrained(os.path.join(work, "whole"))
        whole = load_file(os.path.join(work, "whole", "model.safetensors"))
        check(embedding in whole and head not in whole, f"{kind}: save_pretrained() keeps the embedding")
        others = {k: v for k, v in whole.items() if k != embedding}
        prefix = embedding.split(".")[0] + "."
        variants = {
            "save_model": None,
            "head": {**others, head: whole[embedding]},
            "both": {**whole, head: whole[embedding].clone()},
            "head without prefix": {k.removeprefix(prefix): v for k, v in {**others, head: whole[embedding]}.items()}}
        layouts = [[]] if encoder else [[], ["--nproc-per-node", "2", "--pipeline-model-parallel-size", "2"],
                                        ["--nproc-per-node", "2", "--tensor-model-parallel-size", "2"]]
        for layout in layouts:
            expected = losses(os.path.join(work, "whole"), encoder, *layout)
            for name, weights in variants.items():
                folder = folder_of(work, model, name, weights)
                if "prefix" not in name:
                    theirs, info = type(model).from_pretrained(folder, output_loading_info=True)
                    check(not info["missing_keys"] and not info["unexpected_keys"] and
                          all(torch.equal(v, model.state_dict()[k]) for k, v in theirs.state_dict().items()),
                          f"{kind}, {name}: transformers finds every weight")
                found = losses(folder, encoder, *layout)
                check(found == expected, f"{kind}, {name} {layout}: {found} and {expected}")
        # transformers does not tie weights that differ, and the models here are tied.
        different = folder_of(work, model, "different", {**whole, head: whole[embedding] + 1})
        done = train(different, encoder)
        check(done.returncode == 2 and "they are one weight of this model" in done.stderr and not done.stdout,
              f"{kind}: {done.stderr.strip()}")
        neither = folder_of(work, model, "neither", others)
        done = train(neither, encoder)
        check(done.returncode == 2 and f"'{embedding.removeprefix(prefix)}' is missing" in done.stderr,
              f"{kind}: {done.stderr.strip()}")

# The head of an untied model is no embedding.
untied = hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, tie_word_embeddings=False))
with tempfile.TemporaryDirectory() as work:
    state = {k: v for k, v in untied.state_dict().items() if k != "model.embed_tokens.weight"}
    done = train(folder_of(work, untied, "untied", state), False)
    check(done.returncode == 2 and "'embed_tokens.weight' is missing" in done.stderr, done.stderr.strip())
