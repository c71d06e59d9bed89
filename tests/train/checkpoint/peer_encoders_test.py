"""BERT and DistilBERT with the same weights here and in transformers: losses, every gradient, and the model saved again.

    peer_encoders_test.py ENCODER_PEER_TOOL
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from peer_support import check, skip  # noqa: E402

try:
    import torch
    import transformers as hf
    from safetensors.torch import load_file, save_file
except ImportError as error:
    skip(str(error))

torch.set_num_threads(1)
tool = sys.argv[1]
LENGTHS = (23, 9, 17, 4)
IGNORED = -100


def config_of(kind, **more):
    if kind == "bert":
        return hf.BertConfig(vocab_size=101, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                             intermediate_size=96, max_position_embeddings=32, **more)
    return hf.DistilBertConfig(vocab_size=101, dim=48, n_layers=3, n_heads=4, hidden_dim=96,
                               max_position_embeddings=32, qa_dropout=0.0, **more)


def random_model(architecture, config):
    """Not the tiny initial values: every bias and norm counts."""
    torch.manual_seed(3)
    model = getattr(hf, architecture)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * (0.15 if p.ndim > 1 else 0.3))
    return model


def sequences():
    g = torch.Generator().manual_seed(5)

    def draw(low, high, n):
        return torch.randint(low, high, (n,), generator=g).tolist()

    found = []
    for k, length in enumerate(LENGTHS):
        masked = sorted(set(draw(1, length, 3)))
        found.append({"ids": draw(1, 101, length), "types": [int(i > length // 2) for i in range(length)],
                      "masked": masked, "labels": draw(1, 101, len(masked)), "class": k % 2,
                      "start": length // 3, "end": length - 1})
    return found


def expected_loss(model, task, batch, kind):
    """Each sequence by itself, so that there is no padding."""
    cross_entropy = torch.nn.functional.cross_entropy
    total = torch.zeros(())
    masked = sum(len(s["masked"]) for s in batch)
    for s in batch:
        inputs = {"input_ids": torch.tensor([s["ids"]])}
        if kind == "bert":
            inputs["token_type_ids"] = torch.tensor([s["types"]])
        out = model(**inputs)
        if task == "pretraining":
            logits = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
            total = total + cross_entropy(logits[0, s["masked"]], torch.tensor(s["labels"]), reduction="sum") / masked
            if hasattr(out, "seq_relationship_logits"):
                total = total + cross_entropy(out.seq_relationship_logits, torch.tensor([s["class"]])) / len(batch)
        elif task == "classification":
            total = total + cross_entropy(out.logits, torch.tensor([s["class"]])) / len(batch)
        else:
            start = cross_entropy(out.start_logits, torch.tensor([s["start"]]))
            end = cross_entropy(out.end_logits, torch.tensor([s["end"]]))
            total = total + (start + end) / 2 / len(batch)
    return total


def run(work, folder, task, batch, padded):
    with open(f"{work}/batch.json", "w", encoding="utf-8") as f:
        json.dump({"padded": padded, "sequences": batch}, f)
    copy = f"{work}/copy-{padded}"
    done = subprocess.run([tool, folder, task, f"{work}/batch.json", f"{work}/gradients.safetensors", copy],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
    loss, missing = done.stdout.splitlines()
    return float(loss), json.loads(missing), load_file(f"{work}/gradients.safetensors"), copy


def same_gradients(model, gradients, what):
    theirs = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    whole = sum(g.double().pow(2).sum() for g in theirs.values()).sqrt()
    check(set(gradients) == set(theirs), f"{what}: names {sorted(set(gradients) ^ set(theirs))}")
    for name, want in theirs.items():
        error = (gradients[name].double() - want.double()).norm()
        # A bias of keys changes no softmax, and neither does one of all logits of an answer: rounding alone is left.
        nothing = want.double().norm() < 1e-6 * whole
        check(error <= (1e-6 * whole if nothing else 1e-4 * want.double().norm()),
              f"{what}: {name}: error {error} of {want.norm()}")


def same_outputs(model, copy, architecture, batch, kind, what):
    again = getattr(hf, architecture).from_pretrained(copy).eval()
    inputs = {"input_ids": torch.tensor([batch[0]["ids"]])}
    with torch.no_grad():
        for a, b in zip(model(**inputs).to_tuple(), again(**inputs).to_tuple()):
            check(torch.allclose(a, b, rtol=1e-5, atol=1e-6), f"{what}: transformers loads what we saved")


def compare(kind, architecture, task, **more):
    model = random_model(architecture, config_of(kind, **more))
    batch = sequences()
    loss = expected_loss(model, task, batch, kind)
    loss.backward()
    with tempfile.TemporaryDirectory() as work:
        model.save_pretrained(f"{work}/model")
        for padded in (False, True):
            what = f"{architecture}, {'padded' if padded else 'without padding'}"
            ours, missing, gradients, copy = run(work, f"{work}/model", "", batch, padded)
            check(missing == [], f"{what}: missing {missing}")
            check(abs(ours - loss.item()) <= 1e-5 * loss.item(), f"{what}: loss {ours}, expected {loss.item()}")
            same_gradients(model, gradients, what)
            same_outputs(model, copy, architecture, batch, kind, what)
            print(f"ok: {what}")


def old_names():
    """LayerNorm's gamma and beta, no prefix, and a head for something else."""
    model = random_model("BertForPreTraining", config_of("bert"))
    batch = sequences()
    with tempfile.TemporaryDirectory() as work:
        model.save_pretrained(f"{work}/model")
        expected = run(work, f"{work}/model", "", batch, False)[0]
        tensors = load_file(f"{work}/model/model.safetensors")
        old = {n.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
               .replace("LayerNorm.bias", "LayerNorm.beta"): t for n, t in tensors.items()}
        save_file(old, f"{work}/model/model.safetensors")
        loss, missing, _, _ = run(work, f"{work}/model", "", batch, False)
        check(loss == expected and missing == [], "old names")
        _, missing, _, copy = run(work, f"{work}/model", "classification", batch, True)
        check(missing == ["classifier.weight", "classifier.bias"], f"a new head: {missing}")
        again = hf.BertForSequenceClassification.from_pretrained(copy)
        check(torch.equal(again.bert.pooler.dense.weight, model.bert.pooler.dense.weight), "the pooler stays")
        print("ok: old names, a new head")


for of_kind, prefix in (("bert", "Bert"), ("distilbert", "DistilBert")):
    compare(of_kind, prefix + "ForMaskedLM", "pretraining")
    compare(of_kind, prefix + "ForSequenceClassification", "classification", num_labels=3)
    compare(of_kind, prefix + "ForQuestionAnswering", "answers")
compare("bert", "BertForPreTraining", "pretraining")
compare("bert", "BertForMaskedLM", "pretraining", hidden_act="gelu_new")
old_names()
