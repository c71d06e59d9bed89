"""Our safetensors files against the package `safetensors`, both ways; a checkpoint of several processes put together as
the documentation says; a saved GPT-2 in `transformers` where that is installed."""
import json
import os
import subprocess
import sys
import tempfile

tool = sys.argv[1]
try:
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as error:
    print(f"SKIPPED: the package {error.name} is missing (scripts/setup --tests provides it)")
    sys.exit(77)


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def state_of_parts(folder):
    """The optimizer's state of a checkpoint with a manifest, as one process writes it."""
    with open(os.path.join(folder, "manifest.json")) as f:
        manifest = json.load(f)
    files = [safetensors.numpy.load_file(os.path.join(folder, file["name"])) for file in manifest["files"]
             if file["name"].startswith("optimizer")]
    tensors = {}
    for name, entry in manifest["parameters"].items():
        dimension, count = entry.get("dimension", 0), entry.get("shards", 1)
        sections = entry.get("sections", [entry["shape"][dimension]])
        for prefix in ("master.", "exp_avg.", "exp_avg_sq."):
            shape = list(entry["shape"])
            shape[dimension] //= count
            elements = int(numpy.prod(shape))
            shards = [numpy.full(elements, numpy.nan, dtype="float32") for _ in range(count)]
            for file, shard, first, last in entry["pieces"]:
                whole = (first, last) == (0, elements)
                key = prefix + name + ("" if whole else f":{first}-{last}")
                shards[shard][first:last] = files[file][key].reshape(-1)
            # A section of the whole is the sections of the shards one after the other.
            ends = numpy.cumsum([n // count for n in sections])[:-1]
            split = [numpy.split(shard.reshape(shape), ends, axis=dimension) for shard in shards]
            tensors[prefix + name] = numpy.concatenate([s[i] for i in range(len(sections)) for s in split], axis=dimension)
    return tensors


TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "U16": "uint16", "U8": "uint8"}
with tempfile.TemporaryDirectory() as work:
    arrays = {"plain": numpy.arange(6, dtype="float32").reshape(2, 3), "\u00e9 \"quoted\"": numpy.array([7], dtype="int64"),
              "empty": numpy.zeros((0, 4), dtype="float16"), "scalar": numpy.array(5, dtype="uint8")}
    safetensors.numpy.save_file(arrays, os.path.join(work, "from_python.safetensors"))
    out = subprocess.run([tool, work], check=True, stdout=subprocess.PIPE).stdout.decode("utf-8")
    expected = sorted(f"{name} {dict(float32='F32', int64='I64', float16='F16', uint8='U8')[str(a.dtype)]} {a.tobytes().hex()}"
                      for name, a in arrays.items())
    check(sorted(out.splitlines()) == expected, "a file of the package is read")

    ours = os.path.join(work, "types.safetensors")
    with safetensors.safe_open(ours, framework="numpy") as f:
        check(f.metadata() == {"format": "pt"}, "metadata")
        check(len(f.keys()) == 16, "all tensors are seen")
        for key in f.keys():
            if key.startswith("BF16"):
                continue
            tensor = f.get_tensor(key)
            name = TYPES[key.split(".")[0]]
            check(str(tensor.dtype) == name and tensor.shape == (2, 3) and
                  tensor.tobytes() == bytes(i % 256 for i in range(tensor.nbytes)), f"{key} is read by the package")
    # The package itself writes the same bytes (numpy has no bf16: its raw interface takes memory).
    sizes = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U16": 2, "U8": 1}
    names = {**TYPES, "BF16": "bfloat16"}
    kept = {t: numpy.arange(6 * sizes[t], dtype="uint8") for t in sizes}
    if hasattr(safetensors, "TensorSpec"):
        raw = {f"{t}.{s}": safetensors.TensorSpec(dtype=names[t], shape=[2, 3], data_ptr=kept[t].ctypes.data,
                                                  data_len=kept[t].nbytes) for t in sizes for s in "ab"}
    else:  # before 0.8
        raw = {f"{t}.{s}": {"dtype": names[t], "shape": [2, 3], "data": kept[t].tobytes()} for t in sizes for s in "ab"}
    with open(ours, "rb") as f:
        check(f.read() == bytes(safetensors.serialize(raw, metadata={"format": "pt"})), "the package writes the same bytes")

    whole = safetensors.numpy.load_file(os.path.join(work, "one", "iter_0000003", "optimizer.safetensors"))
    parts = state_of_parts(os.path.join(work, "many", "iter_0000003"))
    check(sorted(parts) == sorted(whole), "the parts have the parameters of the whole")
    for key, tensor in whole.items():  # without the padding of the vocabulary, which differs
        rows = 11 if key.endswith("wte.weight") else len(tensor)
        check(numpy.array_equal(parts[key][:rows], tensor[:rows]), f"{key} of the parts is that of the whole")

    model = safetensors.numpy.load_file(os.path.join(work, "model", "model.safetensors"))
    check(model["transformer.h.0.attn.c_attn.weight"].shape == (16, 48), "c_attn is [in, out]")
    try:
        import torch
        from transformers import GPT2LMHeadModel
    except ImportError:
        print("transformers is not installed: the model was not run there")
    else:
        m, info = GPT2LMHeadModel.from_pretrained(os.path.join(work, "model"), output_loading_info=True)
        check(not info["missing_keys"] and not info["unexpected_keys"], "transformers finds every weight")
        check(torch.equal(m.transformer.h[1].mlp.c_fc.weight, torch.from_numpy(model["transformer.h.1.mlp.c_fc.weight"])),
              "transformers has the same numbers")
        exported = os.path.join(work, "exported")
        arrays = safetensors.numpy.load_file(os.path.join(exported, "model.safetensors"))
        m, info = GPT2LMHeadModel.from_pretrained(exported, output_loading_info=True)
        check(not info["missing_keys"] and not info["unexpected_keys"], "transformers finds every weight of several processes")
        for key, parameter in m.named_parameters():
            check(torch.equal(parameter, torch.from_numpy(arrays[key])), f"transformers has {key}")
            ours = whole["master." + key.removeprefix("transformer.")]  # Linear weights are [out, in] there
            ours = ours[:11] if key.endswith("wte.weight") else ours
            turned = ours.T if key.split(".")[-2] in ("c_attn", "c_proj", "c_fc") and ours.ndim == 2 else ours
            check(numpy.array_equal(parameter.detach().numpy(), turned), f"{key} is the master weight")
