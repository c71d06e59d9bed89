"""tally-train for aarch64, run by qemu out of its wheel: it prepares the same data as the program of this machine, trains to
the same losses (1e-6), and each reads the other's checkpoints.

  train_aarch64_test.py SOURCE DIST TALLY_TRAIN

TALLY_TRAIN is this machine's program. DIST has the wheel that `scripts/package --aarch64 train-wheel` made, and LibTorch for
aarch64 lies in .deps/site-aarch64 (TALLY_DEPS), where `scripts/setup --aarch64 --wheel` put it. Of that the programs get the
files that tally-train-libtorch would unpack.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE, DIST, NATIVE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
del sys.argv[1:4]
SITE = pathlib.Path(os.environ.get("TALLY_DEPS", SOURCE / ".deps")) / "site-aarch64"
WHEEL = next(iter(sorted(DIST.glob("tally_train-*+cpu-*_aarch64.whl"))), None)
# A processor without SVE, whose instructions qemu is ten times slower with.
QEMU = ("qemu-aarch64", "-cpu", "neoverse-n1", "-L", "/usr/aarch64-linux-gnu")
# The quickstart's.
MODEL = ("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
         "--micro-batch-size 8 --global-batch-size 8 --lr 3e-3 --lr-decay-style cosine --lr-warmup-iters 4 --hidden-dropout 0 "
         "--attention-dropout 0 --split 9,1,0 --train-iters 6 --log-interval 1 --device cpu").split()
# Bytes above 127, and what Unicode's normal forms and classes are asked about.
TEXT = "Grüße aus Köln: ½ Å ﬁ 東京 — naïve café, Ωmega; Ёлка 🙂 e\u0301t\u00e9\n\n" * 40
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] gru ##ße aus koln : cafe , naive omega ; елка 東 京 ete — fi".split()


def losses(record):
    return json.loads(record.read_text())["steps"]["loss"]


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        with zipfile.ZipFile(WHEEL) as wheel:
            wheel.extractall(cls.folder / "site")
        package = cls.folder / "site/tally_train"
        for program in package.glob("bin/tally-train*"):
            program.chmod(0o755)
        spec = importlib.util.spec_from_file_location("libtorch", package / "libtorch.py")
        libtorch = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(libtorch)
        for path in sorted(SITE.glob("*/**/*.so*")):
            name = path.relative_to(SITE).as_posix()
            if (libtorch.CPU_LIBRARIES if name.startswith("torch/") else libtorch.LIBRARIES).match(name):
                link = package / "libtorch" / name
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
        cls.programs = {"x86-64": [NATIVE], "aarch64": [*QEMU, package / "bin/tally-train"]}
        cls.help = {"x86-64": [NATIVE.parent / "tally-train-help"], "aarch64": [*QEMU, package / "bin/tally-train-help"]}
        (cls.folder / "text.txt").write_text(TEXT)
        (cls.folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")

    def call(self, program, *words):
        # Sums in one order, whatever else this machine computes.
        environment = dict(os.environ, OMP_NUM_THREADS="1", LC_ALL="C.UTF-8")
        done = subprocess.run([str(word) for word in (*program, *words)], cwd=self.folder, env=environment, timeout=900,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        return done.stdout

    def train(self, program, data, *words):
        name = f"{len(list(self.folder.glob('*.json')))}.json"
        self.call(program, *MODEL, "--tokenizer-type", "bytes", "--data-path", data, "--record", name, *words)
        return losses(self.folder / name)

    def close(self, one, other):
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)

    def test_texts(self):
        for words in (["--help"], ["manual"], ["complete", "bash"], ["reference"]):
            with self.subTest(words):
                self.assertEqual(*(self.call(program, *words) for program in self.help.values()))
        self.assertIn("tally-train ", self.call(self.help["aarch64"], "--version"))

    def prepared(self, text, *tokenizer):
        """The data of both machines, which are the same bytes."""
        for machine, program in self.programs.items():
            self.call(program, "prepare", "--input", text, "--output", f"data-{machine}", *tokenizer,
                      "--split-documents-on-blank-lines")
        for kind in ("bin", "idx"):
            one, other = ((self.folder / f"data-{machine}.{kind}").read_bytes() for machine in self.programs)
            self.assertEqual(one, other)
        return "data-aarch64"

    def test_tokenizers(self):
        self.prepared("text.txt", "--tokenizer-type", "bytes", "--append-eod")
        self.prepared("text.txt", "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", "vocab.txt")

    def test_the_quickstart_s_losses_and_checkpoints(self):
        data = self.prepared(SOURCE / "README.md", "--tokenizer-type", "bytes", "--append-eod")
        seen = {machine: self.train(program, data, "--save", f"saved-{machine}", "--save-interval", 3)
                for machine, program in self.programs.items()}
        self.close(*seen.values())
        # Each goes on where the other was.
        for (machine, program), other in zip(self.programs.items(), reversed(self.programs)):
            saved = self.folder / f"saved-{other}"
            (saved / "latest_checkpointed_iteration.txt").write_text("3")
            self.close(self.train(program, data, "--load", saved), seen[machine][3:])

    def test_losses_with_vectors_of_sve(self):
        data = self.prepared(SOURCE / "README.md", "--tokenizer-type", "bytes", "--append-eod")
        sve = [word.replace("neoverse-n1", "max") for word in map(str, self.programs["aarch64"])]
        small = ("--micro-batch-size", 1, "--global-batch-size", 1, "--seq-length", 32, "--train-iters", 3, "--lr-warmup-iters", 1)
        self.close(self.train(sve, data, *small), self.train(self.programs["x86-64"], data, *small))


def why_not():
    if WHEEL is None:
        return (f"there is no wheel of tally-train for aarch64 in {DIST}: scripts/setup --aarch64 --wheel, then "
                f"TALLY_DIST={DIST} scripts/package --aarch64 train-wheel make it")
    if not (SITE / "torch").is_dir():
        return f"there is no LibTorch for aarch64 in {SITE}: scripts/setup --aarch64 --wheel fetches it"
    return "" if shutil.which(QEMU[0]) else f"there is no {QEMU[0]}"


if __name__ == "__main__":
    if why_not():
        print(f"SKIPPED: {why_not()}")
        sys.exit(77)
    unittest.main()
