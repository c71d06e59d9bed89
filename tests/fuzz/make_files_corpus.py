#!/usr/bin/env python3
"""make_files_corpus.py [FOLDER]: writes the inputs that files_fuzz starts from (files_corpus/). It needs torch and h5py,
which scripts/setup --tests installs."""
import collections
import pathlib
import sys
import zipfile

import h5py
import numpy
import torch

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "train/convert"))
import bundle_writer as tf  # noqa: E402

out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "files_corpus"
out.mkdir(exist_ok=True)
work = out / "work"

base = torch.arange(16, dtype=torch.float32).reshape(4, 4)
states = {"plain": {"w": base, "t": base.t(), "half": torch.ones(3).half()},
          "ordered": collections.OrderedDict(w=torch.nn.Parameter(base), b=base[1])}
for name, state in states.items():
    for protocol in (2, 4):
        torch.save({"model": state, "step": 3, "best": 1.5, "list": [1, (2, None, True)]} if protocol == 4 else state, work,
                   pickle_protocol=protocol)
        with zipfile.ZipFile(work) as archive:
            pickle = next(archive.read(n) for n in archive.namelist() if n.endswith("/data.pkl"))
        (out / f"k_{name}{protocol}").write_bytes(b"k" + pickle)
    (out / f"z_{name}").write_bytes(b"z" + work.read_bytes())

header = tf.integer(1, 1) + tf.message(3, tf.integer(1, 1))
pairs = [(b"", header), (b"a/kernel", tf.entry(tf.FLOAT, [2, 4], 0, 0, bytes(32))),
         (b"a/kernel2", tf.entry(tf.HALF, [3], 0, 8, bytes(6))), (b"b", tf.entry(tf.BFLOAT16, [], 0, 0, bytes(2)))]
(out / "t_table").write_bytes(b"t" + tf.table(pairs, per_block=2))
(out / "e_block").write_bytes(b"e" + tf.block(pairs, 2))

for name, options in (("contiguous", {}), ("chunks", {"chunks": (2, 4)}),
                      ("gzip", {"chunks": (2, 4), "compression": "gzip", "shuffle": True})):
    with h5py.File(work, "w", libver="earliest" if name != "chunks" else "latest") as f:
        f.create_dataset("input_ids", data=numpy.arange(12, dtype="i4").reshape(3, 4), **options)
        f.create_dataset("segment_ids", data=numpy.ones((3, 4), dtype="i1"), **options)
        f.create_dataset("next_sentence_labels", data=numpy.zeros(3, dtype="i1"))
    (out / f"h_{name}").write_bytes(b"h" + work.read_bytes())
work.unlink()
