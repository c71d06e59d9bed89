"""Rounds of tally-train and of its peer by turns, case after case: bench/gpu/run calls this once the numerics hold.

A round of ours is one start of tally-train, whose first steps (tuning, warm-up) do not count. The peer of a case is
started once, compiles, and then measures one round whenever it is asked to; it waits while ours runs. The Hugging Face
peer is started anew for each round. Records, logs and peers.json go to --out; bench/gpu/table.py makes the table.

Both sides of a row do the same work: the same layers, heads, batch, length and accumulation; float32 master weights and
Adam moments; clipping at 1.0; the loss from float32 values of all positions; random tokens, which come from the host except
the compiled GPT's. Dropout is the same on both: none against the compiled GPT, which has none; against Hugging Face Trainer
the 0.1 of GPT-2's configuration in all three places, as in the benchmarks that these rows come from (--dropout gives both
another). The differences left: Trainer's vocabulary is 50,257 and ours is padded to 50,304; Trainer predicts one position
less of each sample; weight decay is 0 there and ours 0.01, in the same kernel. tf32x3 has no counterpart: its peer is the
strict fp32 that it stands for. PyTorch's float32 attention kernel takes three TF32 GEMMs even then (CUTLASS's
OpMultiplyAddFastF32); 124m-b8-fp32-tf32x3 does the same, 124m-b8-fp32 takes float32 or float64 multiply-adds
throughout.
"""
import argparse
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = "--mock-data --lr 3e-4 --log-interval 10".split()
HF_DROPOUT = 0.1
SHORT = "--seq-length 1024"


class Case:
    """Flags of tally-train, steps of a round (about five seconds on an H200), peers as (program, flags), the arguments of
    tally-floor where the lower bound on the step time (roofline) is to be measured, and the name of the case's row in
    bench/RESULTS.md."""

    def __init__(self, flags, steps, *peers, floor=None, row):
        self.flags, self.steps, self.peers, self.floor, self.row = flags, steps, peers, floor, row

    def part(self):
        """Of bench/RESULTS.md, as bench/report names it."""
        programs = {"compiled_gpt": "trainer-compile", "hf_trainer": "trainer-hf", "hf_encoder": "trainer-encoders"}
        return programs[self.peers[0][0]] if self.peers else "trainer-wide"

    def against_hf(self):
        return any(program.startswith("hf_") for program, _ in self.peers)

    def dropout(self, wanted=None):
        if not self.against_hf():
            return 0
        return HF_DROPOUT if wanted is None else wanted

    def our_flags(self, dropout=None):
        d = str(self.dropout(dropout))
        return [*self.flags.split(), *COMMON, "--hidden-dropout", d, "--attention-dropout", d]


def wide(heads, layers):
    """Layers of a 13B model: without a peer, compared with its lower bound."""
    return Case(f"--num-layers {layers} --hidden-size 5120 --num-attention-heads {heads} --seq-length 2048 "
                "--max-position-embeddings 2048 --micro-batch-size 4 --bf16", 15, floor=f"{layers} 5120 {heads} 2048 4",
                row=f"{heads} heads of {5120 // heads}")


def encoder(model, task, tokens, batch, precision, steps, row, compiled=False):
    """An encoder on samples of full length, beside Hugging Face Trainer."""
    ours = {"mlm": "--bert-no-binary-head", "classify": "--task classify --num-classes 6", "squad": "--task squad"}[task]
    flag = "" if precision == "fp32" else f" --{precision}"
    peer = f"--task {task} --tokens {tokens} --batch {batch} --precision {precision}" + (" --compile" if compiled else "")
    return Case(f"--model {model} {ours} --seq-length {tokens} --micro-batch-size {batch}{flag}", steps,
                ("hf_encoder", peer), row=row)


def llama_8b(fp8="", fp8_format="hybrid", peer=""):
    """Six layers of Llama 8B with a tied head, in bf16 or with the blocks' GEMMs in FP8 by this recipe, and torchao's
    by the same or by `peer`."""
    return Case("--seq-length 4096 --num-layers 6 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
                "--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear "
                "--position-embedding-type rope --rotary-base 500000 --tokenizer-type NullTokenizer --vocab-size 128256 "
                "--micro-batch-size 2 --bf16" + (f" --fp8-format {fp8_format} --fp8-recipe {fp8}" if fp8 else ""), 20,
                ("compiled_gpt", "--model llama-8b-6 --batch 2 --tokens 4096" + (f" --float8 {peer or fp8}" if fp8 else "")),
                row="Llama 8B, 6 layers, tied, B2 T4096" + (f", FP8 {fp8}" if fp8 else ""))


CASES = {
    "124m": Case(f"{SHORT} --model gpt2 --micro-batch-size 64 --bf16", 45, ("compiled_gpt", "--model 124M --batch 64"),
                 floor="12 768 12 1024 64",
                 row="GPT-2 124M B64"),
    "355m": Case(f"{SHORT} --model gpt2-medium --micro-batch-size 32 --bf16", 32,
                 ("compiled_gpt", "--model 355M --batch 32"), floor="24 1024 16 1024 32",
                 row="GPT-2 355M B32"),
    "774m": Case(f"{SHORT} --model gpt2-large --micro-batch-size 16 --bf16", 32,
                 ("compiled_gpt", "--model 774M --batch 16"), floor="36 1280 20 1024 16",
                 row="GPT-2 774M B16"),
    "1558m": Case(f"{SHORT} --model gpt2-xl --micro-batch-size 16 --bf16", 20,
                  ("compiled_gpt", "--model 1.5B --batch 16"), floor="48 1600 25 1024 16",
                  row="GPT-2 1.5B B16"),
    "llama-1b": Case("--seq-length 2048 --model llama-1b --tokenizer-type NullTokenizer --vocab-size 128256 "
                     "--micro-batch-size 4 --bf16", 40, ("compiled_gpt", "--model llama-1b --batch 4 --tokens 2048"),
                     row="Llama 1B B4 T2048"),
    "llama-8b-6": llama_8b(),
    "llama-8b-6-fp8": llama_8b(fp8="tensorwise"),
    "llama-8b-6-fp8-rowwise": llama_8b(fp8="rowwise", fp8_format="e4m3"),
    # torchao has no recipe of blocks.
    "llama-8b-6-fp8-blockwise": llama_8b(fp8="blockwise", fp8_format="e4m3", peer="rowwise"),
    "13b-40x128": wide(40, 16),
    "13b-32x160": wide(32, 16),
    "124m-b64-bf16": Case(f"{SHORT} --model gpt2 --micro-batch-size 64 --bf16", 45, ("hf_trainer", "--batch 64"),
                          row="124M B64 T1024 bf16"),
    "124m-b32-bf16": Case(f"{SHORT} --model gpt2 --micro-batch-size 32 --bf16", 80, ("hf_trainer", "--batch 32"),
                          row="124M B32 T1024 bf16"),
    "124m-b8-bf16": Case(f"{SHORT} --model gpt2 --micro-batch-size 8 --bf16", 200, ("hf_trainer", "--batch 8"),
                         row="124M B8 T1024 bf16"),
    "124m-b8-fp16": Case(f"{SHORT} --model gpt2 --micro-batch-size 8 --fp16 --initial-loss-scale 65536", 200,
                         ("hf_trainer", "--batch 8 --precision fp16"),
                         row="124M B8 T1024 fp16, dynamic loss scale"),
    "124m-b8-tf32": Case(f"{SHORT} --model gpt2 --micro-batch-size 8 --tf32", 80,
                         ("hf_trainer", "--batch 8 --precision tf32"),
                         row="124M B8 T1024 tf32"),
    "124m-b8-fp32": Case(f"{SHORT} --model gpt2 --micro-batch-size 8", 40, ("hf_trainer", "--batch 8 --precision fp32"),
                         row="124M B8 T1024 fp32, no TF32 anywhere"),
    "124m-b8-fp32-tf32x3": Case(f"{SHORT} --model gpt2 --micro-batch-size 8 --fp32-attention tf32x3", 40,
                                ("hf_trainer", "--batch 8 --precision fp32"),
                                row="124M B8 T1024 fp32, attention tf32x3"),
    "124m-b8-tf32x3": Case(f"{SHORT} --model gpt2 --micro-batch-size 8 --precision tf32x3", 60,
                           ("hf_trainer", "--batch 8 --precision fp32"),
                           row="124M B8 T1024 tf32x3"),
    "355m-b6-t512-fp32": Case("--seq-length 512 --model gpt2-medium --micro-batch-size 6", 40,
                              ("hf_trainer", "--model 355M --batch 6 --tokens 512 --precision fp32"),
                              row="355M B6 T512 fp32, no TF32 anywhere"),
    "355m-b7x4-t512-bf16": Case("--seq-length 512 --model gpt2-medium --micro-batch-size 7 --global-batch-size 28 --bf16",
                                40, ("hf_trainer", "--model 355M --batch 7 --tokens 512 --accumulation 4"),
                                row="355M B7 x 4 T512 bf16"),
    "bert-large-t128-b256": encoder("bert-large", "mlm", 128, 256, "bf16", 40, "BERT-large T128 B256 bf16", compiled=True),
    "bert-large-t512-b64": encoder("bert-large", "mlm", 512, 64, "bf16", 40, "BERT-large T512 B64 bf16"),
    "bert-large-t128-b56-bf16": encoder("bert-large", "mlm", 128, 56, "bf16", 100, "BERT-large T128 B56 bf16"),
    "bert-large-t128-b56-fp32": encoder("bert-large", "mlm", 128, 56, "fp32", 30, "BERT-large T128 B56 fp32, no TF32 anywhere"),
    "distilbert-t128-b256-fp16": encoder("distilbert", "classify", 128, 256, "fp16", 150, "DistilBERT classes T128 B256 fp16"),
    "distilbert-t128-b256-fp32": encoder("distilbert", "classify", 128, 256, "fp32", 40,
                                         "DistilBERT classes T128 B256 fp32, no TF32 anywhere"),
    "bert-large-squad-t384-b32": encoder("bert-large", "squad", 384, 32, "bf16", 60, "BERT-large SQuAD T384 B32 bf16"),
}


def fail(text):
    sys.exit("bench/gpu/measure.py: " + text)


def last_json(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


class Peer:
    """One case's peer, data parallel where `gpus` is above 1; measure() returns the JSON line of one round."""

    def __init__(self, program, flags, steps, log, gpus=1):
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)] if gpus > 1 else []
        self.command = [sys.executable, *torchrun, os.path.join(HERE, "peers", program + ".py"), *flags.split(),
                        "--steps", str(steps)]
        self.log_name = log
        self.log = open(log, "w")
        self.process = None
        if program == "compiled_gpt":
            self.process = subprocess.Popen(self.command + ["--on-request"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.log, text=True)
            try:
                self.line()  # ready
            except BaseException:
                self.kill()
                raise

    def line(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        fail(f"the peer ended; its messages: {self.log_name}")

    def measure(self):
        if self.process:
            self.process.stdin.write("measure\n")
            self.process.stdin.flush()
            return self.line()
        done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        return last_json(done.stdout) or fail(f"the peer failed; its messages: {self.log_name}")

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.log.close()

    def kill(self):
        """Whatever happens, no peer keeps the GPU's memory from whoever measures next."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def chosen(names):
    """The cases of a list with commas, in which hf stands for all those against Hugging Face Trainer."""
    found = []
    for name in names.split(","):
        if name != "hf" and name not in CASES:
            fail(f"unknown case '{name}'; known: hf (all against Hugging Face Trainer), {', '.join(CASES)}")
        found += [n for n, c in CASES.items() if c.against_hf()] if name == "hf" else [name]
    return list(dict.fromkeys(found))


def run_ours(a, name, steps, number):
    stem = os.path.join(a.out, f"{name}.{number}")
    command = [a.train, *CASES[name].our_flags(a.dropout), *a.flags.split(), "--train-iters", str(steps), "--record",
               stem + ".json"]
    with open(stem + ".txt", "w") as log:
        if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode != 0:
            fail(f"tally-train failed on case {name}; its messages: {stem}.txt")
    with open(stem + ".txt") as log:
        print(log.read().splitlines()[-1], flush=True)


def measure_floor(a, name, arguments):
    done = subprocess.run([a.floor, *arguments.split()], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail(f"{a.floor} failed on case {name}")
    with open(os.path.join(a.out, name + ".floor.json"), "w") as file:
        file.write(done.stdout)
    print(f"lower bound of {name}: {json.loads(done.stdout)['tokens_per_second']:,.0f} tokens/s", flush=True)


def whole(text):
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")


def probability(text):
    try:
        if 0 <= float(text) < 1:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to below 1")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message)


def main():
    p = Parser()
    p.add_argument("--print-flags", action="store_true", help="print each case's name and tally-train's flags, and end")
    p.add_argument("--train", default="tally-train")
    p.add_argument("--out", default=".")
    p.add_argument("--cases", default="124m,355m")
    p.add_argument("--rounds", type=whole, default=3)
    p.add_argument("--steps", type=whole)
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--floor", help="the program tally-floor; none: no lower bounds")
    p.add_argument("--flags", default="", help="more flags for tally-train")
    p.add_argument("--dropout", type=probability, help="of both sides of the rows against Hugging Face Trainer")
    a = p.parse_args()
    names = chosen(a.cases)
    if a.print_flags:
        for name in names:
            print(name, *CASES[name].our_flags(a.dropout), a.flags)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/gpu/measure.py: told to end"))
    running = []
    try:
        measure_all(a, names, running)
    finally:
        for peer in running:
            peer.kill()


def measure_all(a, names, running):
    """`running`: the peers that may live, for the caller to end."""
    peers = {}
    for name in names:
        case = CASES[name]
        steps = a.steps or case.steps
        running.clear()
        for program, flags in () if a.no_peers else case.peers:
            if program.startswith("hf_"):
                flags += f" --dropout {case.dropout(a.dropout)}"
            peer = Peer(program, flags, min(steps, 60), os.path.join(a.out, f"{name}.{program}.txt"))
            running.append(peer)
            peers.setdefault(name, {})[program] = peer.record = {"command": " ".join(peer.command[1:]), "rounds": []}
        for number in range(1, a.rounds + 1):
            run_ours(a, name, steps, number)
            for peer in running:
                if any("error" in done for done in peer.record["rounds"]):
                    continue  # what did not fit once
                peer.record["rounds"].append(peer.measure())
                print(json.dumps(peer.record["rounds"][-1]), flush=True)
                with open(os.path.join(a.out, "peers.json"), "w") as file:
                    json.dump(peers, file, indent=1)
        for peer in running:
            peer.close()
        if a.floor and case.floor:
            measure_floor(a, name, case.floor)


if __name__ == "__main__":
    main()
