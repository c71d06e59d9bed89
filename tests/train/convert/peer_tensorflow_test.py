"""`tally-train convert` of the original BERT's checkpoints. TensorFlow is not needed: bundle_writer.py writes the files
from the description of their format. `transformers` gives the weights, and runs what was converted."""
import json
import os
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"SKIPPED: the package {error.name} is missing (scripts/setup --tests provides it)")
    sys.exit(77)

import bundle_writer as tf
from peer_support import check, convert, refused, same_losses

torch.manual_seed(2)
# As Google publishes it: no model_type, no architectures.
CONFIG = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
          "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_act": "gelu", "initializer_range": 0.02,
          "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def original_name(name):
    """The variable of modeling.py and run_pretraining.py of the original BERT for a parameter of transformers, and
    whether it is transposed there (tf.layers.dense keeps [in, out])."""
    heads = {"cls.predictions.bias": "cls/predictions/output_bias",
             "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
             "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
             "qa_outputs.weight": "cls/squad/output_weights", "qa_outputs.bias": "cls/squad/output_bias",
             "classifier.weight": "output_weights", "classifier.bias": "output_bias"}
    if name in heads:
        return heads[name], False
    name = name.replace(".layer.", ".layer_").replace("LayerNorm.weight", "LayerNorm.gamma")
    name = name.replace("LayerNorm.bias", "LayerNorm.beta").replace(".", "/")
    if name.endswith("_embeddings/weight"):
        return name.removesuffix("/weight"), False
    return (name.removesuffix("weight") + "kernel", True) if name.endswith("/weight") else (name, False)


def bytes_of(tensor):
    return bytes(tensor.detach().contiguous().flatten().view(torch.uint8).tolist())


def variables_of(model, dtype=torch.float32, number=tf.FLOAT):
    out = {}
    for name, value in model.named_parameters():
        original, transposed = original_name(name)
        value = (value.t() if transposed else value).to(dtype)
        out[original] = (number, list(value.shape), bytes_of(value))
    return out


def folder(work, name):
    path = os.path.join(work, name)
    os.mkdir(path)
    with open(os.path.join(path, "bert_config.json"), "w") as f:
        json.dump(CONFIG, f)
    with open(os.path.join(path, "vocab.txt"), "w") as f:
        f.write("".join(f"{word}\n" for word in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(115)]))
    return path


def same_weights(target, model, kind):
    ours, info = type(model).from_pretrained(target, output_loading_info=True)
    check(not info["missing_keys"] and not info["unexpected_keys"], f"{kind}: transformers finds every weight")
    expected = dict(model.named_parameters())
    check(all(torch.equal(value, expected[name]) for name, value in ours.named_parameters()), f"{kind}: the same weights")
    ids = torch.arange(1, 21).reshape(1, 20)
    with torch.no_grad():
        one, two = model.eval()(input_ids=ids), ours.eval()(input_ids=ids)
    check(all(torch.allclose(a, b, atol=1e-6) for a, b in zip(one.to_tuple(), two.to_tuple(), strict=True)), f"{kind}: the same outputs")


def test_heads(work):
    for kind in (transformers.BertForPreTraining, transformers.BertForQuestionAnswering,
                 transformers.BertForSequenceClassification):
        model = kind(transformers.BertConfig(**CONFIG, num_labels=3 if "Sequence" in kind.__name__ else 2))
        source, target = folder(work, kind.__name__), os.path.join(work, kind.__name__ + ".out")
        variables = variables_of(model)
        # What the optimizer and the step leave in a checkpoint of training.
        extra = {name + slot: value for name, value in list(variables.items())[:9] for slot in ("/adam_m", "/adam_v")}
        extra["global_step"] = (tf.INT64, [], bytes(8))
        tf.write(os.path.join(source, "bert_model.ckpt"), variables | extra, shards=1 + len(variables) % 3)
        out = convert(source, target)
        check(f"{len(variables)} tensors" in out and f"{len(extra)} tensors that are not weights" in out,
              f"{kind.__name__}: the optimizer's variables are left out")
        same_weights(target, model, kind.__name__)
        with open(os.path.join(target, "config.json")) as f:
            check(json.load(f)["architectures"] == [kind.__name__], f"{kind.__name__}: the task is in config.json")
        check(os.path.exists(os.path.join(target, "vocab.txt")), "the vocabulary is copied")
        if kind is transformers.BertForPreTraining:
            model.save_pretrained(os.path.join(work, "saved"))
            same_losses(work, os.path.join(work, "saved"), target)


def test_types(work):
    model = transformers.BertForPreTraining(transformers.BertConfig(**CONFIG))
    for number, dtype in ((tf.BFLOAT16, torch.bfloat16), (tf.HALF, torch.float16)):
        source, target = folder(work, str(dtype)), os.path.join(work, f"{dtype}.out")
        tf.write(os.path.join(source, "model.ckpt-7"), variables_of(model, dtype, number))
        convert(os.path.join(source, "model.ckpt-7"), target)
        ours = transformers.BertForPreTraining.from_pretrained(target, dtype=dtype)
        expected = dict(model.named_parameters())
        check(all(torch.equal(v, expected[k].to(dtype)) for k, v in ours.named_parameters()), f"{dtype}: the same weights")


def test_refused(work):
    model = transformers.BertForPreTraining(transformers.BertConfig(**CONFIG))
    source, target = folder(work, "bad"), os.path.join(work, "bad.out")
    variables, prefix = variables_of(model), os.path.join(source, "bert_model.ckpt")

    def error_of(what, expected, files=variables, **options):
        tf.write(prefix, files, **options)
        check(expected in refused(prefix, target), what)

    error_of("compression is refused", "compressed", compression=1)
    error_of("big-endian numbers are refused", "big-endian", endianness=1)
    name = "bert/pooler/dense/kernel"
    error_of("integers are refused", f"variable '{name}': its DataType is 9",
             variables | {name: (tf.INT64, [32, 16], variables[name][2])})
    error_of("a shape that does not fit", "its shape and type need",
             variables | {name: (tf.FLOAT, [1 << 30, 32], variables[name][2])})
    error_of("a shape beyond 64 bits", "its shape is not possible",
             variables | {name: (tf.FLOAT, [1 << 40, 1 << 40], variables[name][2])})
    error_of("an unknown variable of BERT", "'bert/unknown' is not one of the original BERT",
             variables | {"bert/unknown": variables[name]})
    error_of("another model", "no variables of the original BERT", {"gpt/wte": variables[name]})
    tf.write(prefix, variables, shards=1)
    with open(prefix + ".data-00000-of-00001", "r+b") as f:
        f.seek(1000)
        byte = f.read(1)
        f.seek(1000)
        f.write(bytes([byte[0] ^ 1]))
    check("do not have its CRC-32C" in refused(prefix, target), "a changed byte of a weight is found")
    tf.write(prefix, variables, shards=1)
    with open(prefix + ".data-00000-of-00001", "r+b") as f:
        f.truncate(1000)
    check("cut short" in refused(prefix, target), "a data file that is cut short")
    with open(prefix + ".index", "rb") as f:
        good = f.read()
    for length in range(0, len(good), 97):
        with open(prefix + ".index", "wb") as f:
            f.write(good[:length])
        refused(prefix, target)
    print("ok: an index that is cut short gives one error, wherever it is cut")
    os.remove(prefix + ".data-00000-of-00001")
    with open(prefix + ".index", "wb") as f:
        f.write(good)
    check("data-00000-of-00001' cannot be read" in refused(prefix, target), "a missing data file")
    os.remove(os.path.join(source, "bert_config.json"))
    check("--config" in refused(prefix, target), "a missing configuration")


with tempfile.TemporaryDirectory() as work:
    test_heads(work)
    test_types(work)
    test_refused(work)
