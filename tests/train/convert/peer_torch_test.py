"""`tally-train convert` of checkpoints that PyTorch itself wrote: every number is the same; what is not a dictionary of
tensors is refused and never executed; damaged files give one sentence."""
import collections
import json
import os
import pickle
import sys
import tempfile
import zipfile

try:
    import safetensors.torch
    import torch
    import transformers
except ImportError as error:
    print(f"SKIPPED: the package {error.name} is missing (scripts/setup --tests provides it)")
    sys.exit(77)

from peer_support import PROGRAM, check, convert, refused, run, same_losses

torch.manual_seed(1)


def tensors():
    """A GPT-2 of every type, with tensors that are views of a shared storage; masks of old files are integers."""
    h, vocabulary, kinds = 8, 9, (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    shapes = {"wte.weight": (vocabulary, h), "wpe.weight": (16, h), "ln_f.weight": (h,), "ln_f.bias": (h,)}
    for layer in range(3):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.{part}": (h,) for part in ("weight", "bias")}
        for name, columns, rows in (("attn.c_attn", h, 3 * h), ("attn.c_proj", h, h), ("mlp.c_fc", h, 4 * h),
                                    ("mlp.c_proj", 4 * h, h)):
            shapes |= {f"h.{layer}.{name}.weight": (columns, rows), f"h.{layer}.{name}.bias": (rows,)}

    def views(shape):
        if len(shape) == 1:
            return [torch.randn(3, *shape)[1], torch.randn(2 * shape[0])[::2], torch.nn.Parameter(torch.randn(shape)),
                    torch.randn(shape[0], 4)[:, 2]]
        a, b = shape
        return [torch.randn(b, a).t(), torch.randn(a, b + 5)[:, 2:b + 2], torch.randn(2 * a, 3 * b)[::2, 1::3],
                torch.randn(a, 2, b).permute(1, 0, 2)[1], torch.randn(shape)]

    weights = {}
    for i, (name, shape) in enumerate(shapes.items()):
        view = views(shape)[i % len(views(shape))]
        weights[name] = view if isinstance(view, torch.nn.Parameter) else view.to(kinds[i % 4])
        if i % 4 == 3 and not isinstance(view, torch.nn.Parameter):
            weights[name] = view.to(kinds[i % 4]).repeat(2, *[1] * (view.dim() - 1))[len(view):]
    weights |= {f"h.{i}.attn.bias": torch.randint(0, 2, (1, 1, 16, 16)).to(t)
                for i, t in enumerate((torch.int64, torch.int32, torch.uint8))}
    weights |= {"h.0.attn.masked_bias": torch.tensor(2.5), "h.1.attn.masked_bias": torch.zeros(0, 3),
                "lm_head.weight": weights["wte.weight"]}
    return weights


GPT2 = {"model_type": "gpt2", "n_layer": 3, "n_embd": 8, "n_head": 2, "n_positions": 16, "vocab_size": 9}


def equal(ours, theirs):
    theirs = theirs.detach().contiguous()
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and \
        ours.flatten().view(torch.uint8).equal(theirs.flatten().view(torch.uint8))


def bert():
    config = transformers.BertConfig(vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=64, max_position_embeddings=32, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0)
    return transformers.BertForPreTraining(config)


def write_config(folder, **more):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"model_type": "bert", "vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 32, **more}, f)


def test_values(work):
    weights = tensors()
    kinds = {"plain": dict(weights), "ordered": collections.OrderedDict(weights),
             "nested": {"epoch": 3, "lr": 1e-4, "best": None, "done": False, "losses": [1.5, (2, -70000, 1 << 40)],
                        "model": collections.OrderedDict(weights)},
             "wrapped": {f"module.{k}": v for k, v in weights.items()}}
    config = ["--config", os.path.join(work, "gpt2.json")]
    with open(config[1], "w") as f:
        json.dump(GPT2, f)
    for name, value in kinds.items():
        for protocol in (2, 4):
            path = os.path.join(work, f"{name}{protocol}.pt")
            torch.save(value, path, pickle_protocol=protocol)
            out = os.path.join(work, f"{name}{protocol}.out")
            convert(path, out, *config)
            ours = safetensors.torch.load_file(os.path.join(out, "model.safetensors"))
            check(sorted(ours) == sorted(weights), f"{name}, protocol {protocol}: the names are those of the state dict")
            for key, tensor in weights.items():
                check(equal(ours[key], tensor), f"{name}, protocol {protocol}: {key} has the same bytes", quiet=True)
    path = os.path.join(work, "left_out.pt")
    torch.save({**weights, "h.2.attn.bias": torch.ones(2, dtype=torch.bool)}, path)
    out = convert(path, os.path.join(work, "left_out"), *config)
    check("1 tensors that are not weights were left out, among them 'h.2.attn.bias'" in out, "a mask of bools is left out")


def trained(model):
    """AdamW's state after a step, and the state dict."""
    optimizer = torch.optim.AdamW(model.parameters())
    sum(p.sum() for p in model.parameters()).backward()
    optimizer.step()
    return optimizer.state_dict(), model.state_dict()


def test_wrappers(work):
    """What trainers make of a state dict: names with the parts of wrappers, and other things beside it. The golden
    value is the model itself: transformers finds every weight in the folder, with the same bytes."""
    sizes = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
             "max_position_embeddings": 16}
    models = [transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=60, n_positions=16, n_embd=16, n_layer=2,
                                                                   n_head=2, bos_token_id=0, eos_token_id=0)),
              transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)),
              transformers.BertForPreTraining(transformers.BertConfig(**sizes)),
              transformers.BertForSequenceClassification(transformers.BertConfig(**sizes, num_labels=3)),
              transformers.DistilBertForQuestionAnswering(transformers.DistilBertConfig(
                  vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=16))]
    renamed = {"DataParallel": "module.{}", "torch.compile": "_orig_mod.{}", "compiled, then wrapped": "module._orig_mod.{}",
               "Lightning": "model.{}", "Lightning and torch.compile": "model._orig_mod.{}", "an attribute": "net.{}",
               "of attributes": "learner.net.{}", "FSDP": "_fsdp_wrapped_module.{}", "Fabric": "_forward_module.{}"}
    loss = torch.tensor(1.5)
    nested = {"a loss that is a tensor": lambda w, o: {"model": w, "optimizer": o, "iter_num": 5, "best_val_loss": loss},
              "state_dict": lambda w, o: {"epoch": 1, "state_dict": w, "optimizer_states": [o], "best": loss},
              "module": lambda w, o: {"module": w, "optimizer": None, "rng": torch.zeros(8, dtype=torch.uint8)},
              "another key": lambda w, o: {"net": w, "optim": o, "loss": loss},
              "an average beside it": lambda w, o: {"model": w, "ema": {k: v + 1 for k, v in w.items()}},
              "a name with optim": lambda w, o: {"optimus_model": w, "optim_state": {"exp_avg": w}, "Optimizer": {"m": w}},
              "best weights": lambda w, o: {"optimal_weights": w, "optimizers": [o], "optimizer_G": {"exp_avg": w}},
              "moments by name": lambda w, o: {"weights": w, "optimizer": {"exp_avg": w, "exp_avg_sq": w}},
              "two keys": lambda w, o: {"state": {"model": w}, "loss": loss}}
    for model in models:
        kind, (optimizer, state) = type(model).__name__, trained(model)
        config = os.path.join(work, "wrapped.json")
        model.config.architectures = [kind]
        model.config.to_json_file(config)
        wrapped_blocks = {k.replace(".0.", ".0._checkpoint_wrapped_module."): v for k, v in state.items()}
        check(wrapped_blocks.keys() != state.keys(), f"{kind} has a first block")
        kinds = {name: {form.format(k): v for k, v in state.items()} for name, form in renamed.items()}
        kinds |= {name: make(state, optimizer) for name, make in nested.items()}
        kinds |= {"activation checkpointing": wrapped_blocks,
                  "nanoGPT": nested["a loss that is a tensor"](kinds["torch.compile"], optimizer)}
        for name, value in kinds.items():
            path, out = os.path.join(work, "wrapped.pt"), os.path.join(work, f"{kind} {name}")
            torch.save(value, path)
            convert(path, out, "--config", config)
            theirs, info = type(model).from_pretrained(out, output_loading_info=True)
            check(not info["missing_keys"] and not info["unexpected_keys"] and
                  all(torch.equal(v, state[k]) for k, v in theirs.state_dict().items()), f"{kind}: {name}")
        refuse_two_models(work, state, kind, config)


def refuse_two_models(work, state, kind, config):
    """One sentence and no folder where it is not clear which tensors are the model's."""
    path, out = os.path.join(work, "two.pt"), os.path.join(work, "two")
    other = {k: v + 1 for k, v in state.items()}
    student = {f"student.{k}": v for k, v in state.items()} | {f"teacher.{k}": v for k, v in other.items()}
    for name, value, sentence in (("prefixes", student, "more than once, as 'student."),
                                  ("dictionaries", {"net": state, "ema": other}, "several dictionaries of tensors"),
                                  ("known keys", {"model": state, "state_dict": other}, "among them 'model' and 'state_dict'"),
                                  ("others' names", {f"block{i}.w": torch.ones(2) for i in range(3)},
                                   "none of the 3 tensors")):
        torch.save(value, path)
        check(sentence in refused(path, out, "--config", config), f"{kind}: two {name} are refused")


def test_other_gpt2(work):
    """nanoGPT's own model: its matrices are nn.Linear's, those of transformers' GPT-2 are transposed."""
    path = os.path.join(work, "nano.pt")
    weights = {k: v.float() for k, v in tensors().items() if "attn.bias" not in k and "masked" not in k}
    nano = {"transformer." + k: v.t().contiguous() if v.dim() == 2 and k.startswith("h.") else v for k, v in weights.items()}
    config = os.path.join(work, "gpt2.json")
    for name, value in (("own", nano), ("without biases", {k: v for k, v in nano.items() if not k.endswith(".bias")})):
        torch.save({"model": {"_orig_mod." + k: v for k, v in value.items()}, "model_args": {"n_layer": 3},
                    "best_val_loss": torch.tensor(2.0)}, path)
        error = refused(path, os.path.join(work, "nano"), "--config", config)
        check("stored [out, in], as the nn.Linear" in error or "ln_1.bias' is missing" in error, f"{name}: {error}")


def test_without_crcs(work):
    """torch.save() may leave the CRC-32s out: torch.load() reads such a file. One that has some of them is damaged."""
    path, config = os.path.join(work, "crc.pt"), os.path.join(work, "gpt2.json")
    weights = tensors()
    torch.serialization.set_crc32_options(False)
    torch.save(weights, path)
    torch.serialization.set_crc32_options(True)
    with zipfile.ZipFile(path) as f:
        check({item.CRC for item in f.infolist()} == {0}, "the file has no CRC-32")
    convert(path, os.path.join(work, "crc.out"), "--config", config)
    ours = safetensors.torch.load_file(os.path.join(work, "crc.out", "model.safetensors"))
    check(ours.keys() == weights.keys() and all(equal(ours[k], v) for k, v in weights.items()), "and is converted")
    torch.save(weights, path)
    with zipfile.ZipFile(path) as f:
        item = next(i for i in f.infolist() if i.filename.endswith("/data/0"))
    with open(path, "rb") as f:
        whole = f.read()
    place = whole.rindex(item.CRC.to_bytes(4, "little"))
    with open(path, "wb") as f:
        f.write(whole[:place] + bytes(4) + whole[place + 4:])
    check("do not have its CRC-32" in refused(path, os.path.join(work, "crc.bad"), "--config", config), "one CRC-32 of 0")


def test_model(work):
    """A real BERT: as .bin with old names, as shards, and trained on as from save_pretrained()."""
    model = bert()
    model.save_pretrained(os.path.join(work, "saved"))
    state = model.state_dict()
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
           for k, v in state.items()}
    check(old.keys() != state.keys(), "the model has LayerNorms")
    os.mkdir(os.path.join(work, "bin"))
    model.config.save_pretrained(os.path.join(work, "bin"))
    torch.save(old, os.path.join(work, "bin", "pytorch_model.bin"))
    names = list(state)
    shards = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
    os.mkdir(os.path.join(work, "shards"))
    model.config.save_pretrained(os.path.join(work, "shards"))
    for file, keys in shards.items():
        torch.save({k: state[k] for k in keys}, os.path.join(work, "shards", file))
    with open(os.path.join(work, "shards", "pytorch_model.bin.index.json"), "w") as f:
        json.dump({"weight_map": {k: file for file, keys in shards.items() for k in keys}}, f)
    for kind in ("bin", "shards"):
        convert(os.path.join(work, kind), os.path.join(work, kind + ".out"))
        ours = safetensors.torch.load_file(os.path.join(work, kind + ".out", "model.safetensors"))
        check(sorted(ours) == sorted(state) and all(equal(ours[k], state[k]) for k in state), f"{kind}: same weights")
        same_losses(work, os.path.join(work, "saved"), os.path.join(work, kind + ".out"))


SMALL = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 16}
SMALL_DISTILBERT = {"vocab_size": 60, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 16}


def small_encoders():
    """A model of each head of transformers, by its class's name."""
    models = {}
    for kind, config in (("Bert", transformers.BertConfig(**SMALL)), ("DistilBert", transformers.DistilBertConfig(**SMALL_DISTILBERT))):
        for head in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification",
                     *(["ForPreTraining", "ForNextSentencePrediction"] if kind == "Bert" else [])):
            models[kind + head] = getattr(transformers, kind + head)(config)
    return models


def save(folder, config, weights, **more):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({**config.to_diff_dict(), "architectures": None, **more}, f)
    torch.save(weights, os.path.join(folder, "pytorch_model.bin"))
    return folder


def test_heads(work):
    """All tensors are the model's, and all of the model's are there: a head under another name is not lost."""
    models = small_encoders()
    read = ("ForMaskedLM", "ForSequenceClassification", "ForQuestionAnswering", "ForPreTraining")
    for name, model in models.items():
        state = model.state_dict()
        for given in models:
            if given.startswith("Distil") != name.startswith("Distil"):
                continue
            lacks = set(models[given].state_dict()) - set(state) if given.endswith(read) else set()
            source = save(os.path.join(work, f"{name} as {given}"), model.config, state, architectures=[given])
            if lacks:
                error = refused(source, source + ".out")
                check("is missing, which " + given + " has" in error and any(f"'{k.removeprefix('bert.')}'" in error for k in lacks),
                      f"{name} as {given}: {error}")
            else:
                convert(source, source + ".out")
                check(safetensors.torch.load_file(source + ".out/model.safetensors").keys() == state.keys(), source)
        if not name.endswith((*read, "Model")):
            continue
        source = save(os.path.join(work, f"{name} alone"), model.config, state)
        convert(source, source + ".out")
        with open(source + ".out/config.json") as f:
            found = json.load(f)["architectures"]
        check(found == [name], f"{name} without architectures is a {found}")
    refuse_others(work, models)


def refuse_others(work, models):
    """Tensors that are none of the model's, in a checkpoint and in a folder of --load-hf."""
    averaged = torch.optim.swa_utils.AveragedModel(models["DistilBertForQuestionAnswering"])
    for name in ("BertForSequenceClassification", "DistilBertForSequenceClassification", "DistilBertForQuestionAnswering"):
        model = models[name]
        state = model.state_dict()
        kinds = {"foo.weight": {**state, "foo.weight": torch.ones(2)}, "val_acc.total": {**state, "val_acc.total": torch.tensor(5.)},
                 "queue.x": {**state, "queue.x": torch.ones(2, 2)}, "pooler.dense.scale": {**state, "pooler.dense.scale": torch.ones(2)},
                 "cls.other.weight": {**state, "cls.other.weight": torch.ones(2)},
                 "classifier.0.weight": {**state, "classifier.0.weight": torch.ones(2)},
                 "fc.weight": {k.replace("classifier.", "fc.").replace("qa_outputs.", "fc."): v for k, v in state.items()}}
        if name == "DistilBertForQuestionAnswering":
            kinds["n_averaged"] = averaged.state_dict()
        for i, (tensor, weights) in enumerate(kinds.items()):
            source = save(os.path.join(work, f"{name}{i}"), model.config, weights, architectures=[name])
            error = refused(source, source + ".out")
            check("does not belong to it" in error and (f"'{tensor}'" in error or "'fc.bias'" in error), f"{name}: {error}")
            if tensor != "fc.weight":
                continue
            safetensors.torch.save_file(weights, os.path.join(source, "model.safetensors"))
            done = run("--load-hf", source, "--mock-data", "--device", "cpu", "--seq-length", "16", "--train-iters", "1")
            check(done.returncode == 2 and "'fc.bias' does not belong to it" in done.stderr, f"--load-hf: {name}: {done.stderr}")


TOKENIZER_FILES = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                   "added_tokens.json", "special_tokens_map.json", "chat_template.jinja")


def test_tokenizers(work):
    """The files of every tokenizer are copied, and so are they to a training's result: none of its tokens is lost."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))
    source = save(os.path.join(work, "tokenizers"), model.config, model.state_dict(), architectures=["LlamaForCausalLM"])
    for name in TOKENIZER_FILES:
        with open(os.path.join(source, name), "w") as f:
            f.write(json.dumps({name: 60}))
    converted, trained = source + ".out", source + ".trained"
    convert(source, converted)
    done = run("--load-hf", converted, "--tokenizer-type", "NullTokenizer", "--mock-data", "--device", "cpu", "--seq-length", "16",
               "--train-iters", "1", "--save-hf", trained)
    check(done.returncode == 0, done.stderr)
    for folder in (converted, trained):
        for name in TOKENIZER_FILES:
            with open(os.path.join(source, name)) as f, open(os.path.join(folder, name)) as g:
                check(f.read() == g.read(), f"{folder} has {name}")
    os.rename(os.path.join(converted, "tokenizer.json"), os.path.join(work, "away.json"))
    with open(os.path.join(converted, "vocab.txt"), "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "c", "##o"]) + "\n")
    done = run("tokenize", "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", os.path.join(converted, "vocab.txt"))
    check("added_tokens.json' adds the token" in done.stderr, f"its tokens are not forgotten: {done.stderr}")


class Executes:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def with_pickle(work, name, data):
    """A file of torch.save() with another pickle."""
    good, path = os.path.join(work, "good.pt"), os.path.join(work, name)
    torch.save({"w": torch.ones(4)}, good)
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for item in source.infolist():
            target.writestr(item.filename, data if item.filename.endswith("/data.pkl") else source.read(item.filename))
    return path


def test_work_folder(work):
    target = os.path.join(work, "new")
    torch.save(tensors(), os.path.join(work, "small.pt"))
    os.mkdir(target + ".tmp")
    open(os.path.join(target + ".tmp", "precious"), "w").close()
    source = ["--input", os.path.join(work, "small.pt"), "--config", os.path.join(work, "new.json")]
    with open(os.path.join(work, "new.json"), "w") as f:
        json.dump(GPT2, f)
    done = run("convert", *source, "--output", target)
    check(done.returncode == 2 and "remove it, or name another folder" in done.stderr, done.stderr)
    check(os.listdir(target + ".tmp") == ["precious"], "another's folder stays")
    open(os.path.join(target + ".tmp", ".tally-train-convert"), "w").close()
    done = run("convert", *source, "--output", target)
    check(done.returncode == 0, "a killed conversion is done again" + done.stderr)
    check(sorted(os.listdir(target)) == ["config.json", "model.safetensors"], f"{os.listdir(target)}")
    check(not os.path.exists(target + ".tmp"), "nothing else is left")


def test_part(work):
    path = os.path.join(work, "pytorch_model-00001-of-00002.bin")
    torch.save({"w": torch.ones(2)}, path)
    check("is a part of a model" in refused(path, os.path.join(work, "part")), "a shard by itself is refused")


def test_shapes(work):
    """Weights that are not those of the config.json."""
    path = os.path.join(work, "shapes.pt")
    state = bert().state_dict()
    torch.save(state, path)
    for more, name in (({"vocab_size": 121}, "word_embeddings"), ({"num_hidden_layers": 3}, "layer.2."),
                       ({"intermediate_size": 65}, "intermediate.dense"), ({"num_hidden_layers": 1}, "layer.1.")):
        folder = os.path.join(work, "config")
        os.makedirs(folder, exist_ok=True)
        write_config(folder, **more)
        config = os.path.join(folder, "config.json")
        error = refused(path, os.path.join(work, "shapes"), "--config", config)
        check(f"the weights in '{path}' are not those of '{config}': " in error and name in error, f"{more}: {error}")
    torch.save({"w": torch.ones(2)}, path)
    check("none of the 1 tensors" in refused(path, os.path.join(work, "shapes")), "other tensors")


def test_refused(work):
    marker = os.path.join(work, "executed")
    for protocol in (2, 4):
        data = pickle.dumps({"w": 1, "x": Executes(marker)}, protocol=protocol)
        path = with_pickle(work, "evil.pt", data)
        # The name's place: of the opcode, in the .pt file.
        with zipfile.ZipFile(path) as f:
            info = next(i for i in f.infolist() if i.filename.endswith("/data.pkl"))
            start = info.header_offset + 30 + len(info.filename) + len(info.extra)
        place = start + data.index(b"cposix\nsystem" if protocol == 2 else b"\x93")
        error = refused(path, os.path.join(work, "evil"))
        check(f"byte {place} has the global 'posix.system'" in error, f"protocol {protocol}: the error has name and place")
    check(not os.path.exists(marker), "nothing was executed")
    torch.save(bert(), os.path.join(work, "whole.pt"))
    check("the global 'transformers." in refused(os.path.join(work, "whole.pt"), os.path.join(work, "evil")),
          "a whole model is refused by the name of its class")
    torch.save({"w": torch.ones(4).as_strided((1 << 20, 1 << 20), (0, 0))}, os.path.join(work, "repeats.pt"))
    check("tensor 'w': it repeats elements" in refused(os.path.join(work, "repeats.pt"), os.path.join(work, "evil")),
          "a tensor of a terabyte in a small file is refused")
    torch.save({"w": torch.ones(3)}, os.path.join(work, "old.pt"), _use_new_zipfile_serialization=False)
    check("since PyTorch 1.6" in refused(os.path.join(work, "old.pt"), os.path.join(work, "evil")), "the old format")
    torch.save([1, 2], os.path.join(work, "list.pt"))
    check("it holds no dictionary of tensors" in refused(os.path.join(work, "list.pt"), os.path.join(work, "evil")),
          "a list is refused")
    with zipfile.ZipFile(os.path.join(work, "good.pt")) as source, \
            zipfile.ZipFile(os.path.join(work, "packed.pt"), "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.infolist():
            target.writestr(item.filename, source.read(item.filename))
    check("is compressed" in refused(os.path.join(work, "packed.pt"), os.path.join(work, "evil")), "a packed archive")


def test_damaged(work):
    """Cuts, and a changed byte in each part of the file: one sentence, or a file that is as good."""
    path, out = os.path.join(work, "damaged.pt"), os.path.join(work, "damaged")
    torch.save({"w": torch.randn(40)}, os.path.join(work, "good.pt"))
    with open(os.path.join(work, "good.pt"), "rb") as f:
        good = f.read()
    for length in range(0, len(good), 61):
        with open(path, "wb") as f:
            f.write(good[:length])
        refused(path, out)
    place = good.index(b"FloatStorage")
    with open(path, "wb") as f:
        f.write(good[:place] + b"f" + good[place + 1:])
    check("do not have its CRC-32" in refused(path, out), "a changed byte is found")


with tempfile.TemporaryDirectory() as work:
    write_config(work)
    test_values(work)
    test_wrappers(work)
    test_other_gpt2(work)
    test_without_crcs(work)
    test_model(work)
    test_work_folder(work)
    test_part(work)
    test_shapes(work)
    test_heads(work)
    test_tokenizers(work)
    test_refused(work)
    test_damaged(work)
