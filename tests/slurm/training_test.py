#!/usr/bin/env python3
"""Data parallel training over nodes of a real Slurm.   training_test.py TALLY --train TALLY_TRAIN [--mpi] [TEST ...]"""
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import cluster as slurm
import place
from place import SlurmTest

TRAIN = ""
MPI = False
FLAGS = ("--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 97 --micro-batch-size 2 "
         "--global-batch-size 8 --train-iters 6 --mock-data --precision fp64 --log-interval 2 --lr 1e-3 --device cpu ")
# All nodes are this host, whose name no name server knows under theirs. Open MPI's shared memory does not expect that.
HERE = "--master-addr 127.0.0.1 "
MANY_ON_ONE = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "OMPI_MCA_btl": "self,tcp",
               "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_mpi_yield_when_idle": "1"}
SITE = """\
platform:
  name: site
  {mpi}
  env: {{{env}}}
"""
WORKFLOW = """\
name: parallel
outpath: run
step:
  name: train
  kind: run
  platform: site
  resources: {{nodes: 2, tasks_per_node: 2, cpus_per_task: 1, time: "00:05:00"}}
  launch: {train} {flags} --record record.json
"""


def outer_address():
    """One of this host that is not loopback; that one where there is no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("203.0.113.1", 9))  # sends nothing
            return asked.getsockname()[0]
        except OSError:
            return "127.0.0.1"


class Training(SlurmTest):
    options = {"nodes": 2, "cpus": 4}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.cluster.directory
        subprocess.run([TRAIN, *FLAGS.split(), "--record", f"{folder}/one.json"], check=True, stdout=subprocess.DEVNULL,
                       env={**cls.cluster.env, **MANY_ON_ONE})
        with open(f"{folder}/one.json", encoding="utf-8") as file:
            cls.one = json.load(file)["steps"]["loss"]

    def tearDown(self):
        # A step that has ended is for a moment still completing.
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs' end")
        super().tearDown()

    def srun(self, options, flags, seconds=60):
        return subprocess.run(["srun", "--immediate=30", *options.split(), TRAIN, *flags.split()], cwd=self.place.root,
                              env={**self.cluster.env, **MANY_ON_ONE}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=seconds)

    def check_record(self, path, backend, launcher="srun", ranks=4):
        record = json.loads(path.read_text())
        self.assertEqual(record["environment"]["communication"], backend)
        self.assertEqual(record["environment"]["launcher"], launcher)
        self.assertEqual(record["configuration"]["parallel"]["data"], ranks)
        for mine, ours in zip(self.one, record["steps"]["loss"], strict=True):
            self.assertLessEqual(abs(mine - ours), 1e-12 * mine)

    def test_plain_srun(self):
        done = self.srun("-N2 -n4", FLAGS + HERE + "--record r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_record(self.place.root / "r.json", "sockets")
        self.assertEqual(done.stdout.count("consumed samples:           48"), 1)

    def start(self, options, program, flags, env=None):
        return subprocess.Popen(["srun", "--immediate=30", *options.split(), program, *flags.split()],
                                cwd=self.place.root, env={**self.cluster.env, **MANY_ON_ONE, **(env or {})},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ranks_know_each_other_by_a_token_of_the_step_and_strangers_do_not(self):
        """Nobody gives a token: rank 0 leaves one in the folder of the step, while the ranks meet."""
        gate = self.place.root / "gate"
        os.mkfifo(gate)
        late = self.place.program("late", f'if [ $SLURM_PROCID = 1 ]; then read -r < {gate}; fi\nexec {TRAIN} "$@"\n')
        for address, options in [(outer_address(), "-N2 -n2"), (outer_address(), "--export=NONE -N2 -n2"),
                                 ("127.0.0.1", "-N1 -n2")]:
            with self.subTest(address=address, options=options):
                job = self.start(options, late, f"{FLAGS} --master-addr {address} --record r.json")
                strangers = []
                try:
                    token = slurm.wait_for(lambda: list(self.place.root.glob(".tally-train.Slurm-*.token")), "the token")[0]
                    self.assertEqual(token.stat().st_mode & 0o777, 0o600)
                    self.assertRegex(token.read_text(), "^[0-9a-f]{64}$")
                    port = int(token.name.split(".")[-2])

                    def visit(address=address, port=port):
                        try:
                            return socket.create_connection((address, port), 5)
                        except ConnectionRefusedError:
                            return None
                    for text in [b""] * 20 + [b"GET / HTTP/1.0\r\n\r\n", b"\1\0\0\0", b"H\0\0\0\xff\xff\xff\x0f"]:
                        strangers.append(slurm.wait_for(visit, "rank 0's port"))
                        strangers[-1].sendall(text)
                    with open(gate, "w", encoding="utf-8") as file:
                        file.write("\n")
                    out, err = job.communicate(timeout=60)
                finally:
                    job.kill()
                    job.wait()
                    job.stdout.close()
                    job.stderr.close()
                    for one in strangers:
                        one.close()
                self.assertEqual(job.returncode, 0, err)
                self.assertEqual(out.count("consumed samples:           48"), 1)
                self.assertEqual(err.count("at the start 23 connections were refused: they did not prove that they belong to "
                                           "this run"), 1, err)
                self.assertEqual(list(self.place.root.glob(".tally-train*")), [])
                self.check_record(self.place.root / "r.json", "sockets", ranks=2)

    def test_a_folder_that_the_hosts_do_not_share(self):
        for name in ("0", "1"):
            (self.place.root / name).mkdir()
        apart = self.place.program("apart", f'cd $SLURM_PROCID && exec {TRAIN} "$@"\n')
        job = self.start("-N2 -n2 --kill-on-bad-exit", apart, FLAGS + HERE + "--distributed-timeout-minutes 0.05")
        _, err = job.communicate(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("is not in this rank's folder: start all ranks in one folder that their hosts share, or set "
                      "TALLY_RENDEZVOUS_TOKEN to the same random text on every rank", err)
        for left in self.place.root.rglob(".tally-train*"):  # srun killed rank 0
            left.unlink()
        # A job script exports it, and srun passes it on.
        job = self.start("-N2 -n2", apart, FLAGS + HERE, {"TALLY_RENDEZVOUS_TOKEN": "7" * 64})
        _, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(list(self.place.root.rglob(".tally-train*")), [])

    def test_one_task_a_node_that_starts_its_ranks(self):
        done = self.srun("-N2 --ntasks-per-node=1", FLAGS + HERE + "--nproc-per-node 2 --record r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_record(self.place.root / "r.json", "sockets", "--nproc-per-node")

    def test_a_tasks_output_behind_its_rank(self):
        done = self.srun("-N2 -n2", FLAGS + HERE + "--prefix-output --record r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(all(line.startswith("[rank0]: ") for line in done.stdout.splitlines()), done.stdout)
        self.check_record(self.place.root / "r.json", "sockets", "--nproc-per-node", ranks=2)

    def test_mpi_without_pmix_is_refused_in_one_sentence(self):
        done = self.srun("-N2 -n2", FLAGS + HERE + "--distributed-backend mpi")
        self.assertNotEqual(done.returncode, 0)
        if MPI:
            self.assertEqual(done.stderr.count("tally-train: error: "), 1, done.stderr)
            self.assertIn("no MPI launcher started this process: start it by mpirun, or by srun --mpi=pmix", done.stderr)

    def test_mpi_by_pmix(self):
        if not MPI or "pmix" not in self.cluster.run("srun", "--mpi=list"):
            self.skipTest("no MPI in this build, or no PMIx in this Slurm")
        done = self.srun("--mpi=pmix -N2 -n4", FLAGS + HERE + "--record r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_record(self.place.root / "r.json", "mpi")

    def write_workflow(self, pmix, train):
        env = ", ".join(f"{name}: '{value}'" for name, value in MANY_ON_ONE.items())
        (self.place.root / "site.yaml").write_text(SITE.format(mpi="mpi: pmix" if pmix else "", env=env))
        (self.place.root / "parallel.yaml").write_text(WORKFLOW.format(train=train, flags=FLAGS + HERE))

    def test_a_workflow_trains_on_two_nodes(self):
        pmix = MPI and "pmix" in self.cluster.run("srun", "--mpi=list")
        self.write_workflow(pmix, TRAIN)
        code, out, err = self.place.tally("run", "parallel.yaml", seconds=90)
        self.assertEqual(code, 0, out + err)
        self.check_record(self.place.work(0) / "record.json", "mpi" if pmix else "sockets")
        self.assertEqual(list(self.place.work(0).glob(".tally-train*")), [])

    def test_a_rank_that_fails_before_it_met_the_others_ends_the_run(self):
        """The others, rank 0 too, wait for it: for ten minutes, if nobody ended them."""
        kinds = [False] + ([True] if MPI and "pmix" in self.cluster.run("srun", "--mpi=list") else [])
        for pmix, rank in [(kind, rank) for kind in kinds for rank in (0, 3)]:
            with self.subTest(pmix=pmix, rank=rank):
                train = self.place.program("train", f'if [ $SLURM_PROCID = {rank} ]; then export MASTER_PORT=0; fi\n'
                                                    f'exec {TRAIN} "$@"\n')
                self.write_workflow(pmix, train)
                began = time.monotonic()
                code, out, err = self.place.tally("run", "parallel.yaml", seconds=60)
                self.assertLess(time.monotonic() - began, 30)  # against a hang; it takes two seconds
                self.assertEqual(code, 1, out + err)
                run = sorted((self.place.root / "run").iterdir())[-1].name
                work = self.place.work(0, run=run)
                self.assertEqual((work / "job.status").read_text(), "2\n")
                note = self.place.packages(run)[0]["note"]
                self.assertIn("ended with exit code 2: tally-train: error: MASTER_PORT=0 is not a valid port", note)
                self.assertIn(f"task {rank}: Exited with exit code 2)", note)
                # The summary has no host in it, so that equal failures of many hosts are one line.
                self.assertIn("exit code 2: tally-train: error: MASTER_PORT=0 is not a valid port", out)

    def test_a_killed_rank_ends_all(self):
        job = subprocess.Popen(["srun", "-N2", "-n4", TRAIN, *(FLAGS + HERE).replace("--train-iters 6", "--train-iters 100000000")
                                .split()], cwd=self.place.root, env={**self.cluster.env, **MANY_ON_ONE},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = job.stdout.readline()
            while "iteration" not in line:
                self.assertTrue(line, "it ended before its first iteration")
                line = job.stdout.readline()
            step = self.cluster.jobs()[0][0]

            def rank_two():
                for pid in slurm.processes():
                    there = slurm.environment_of(pid)
                    if f"SLURM_JOB_ID={step}".encode() in there and b"SLURM_PROCID=2" in there:
                        return pid
                return None
            os.kill(slurm.wait_for(rank_two, "rank 2"), 9)
            began = time.monotonic()
            out, err = job.communicate(timeout=60)
            self.assertLess(time.monotonic() - began, 30)  # against a hang; it takes a second
            self.assertNotEqual(job.returncode, 0, out)
            self.assertEqual(err.count("tally-train: error: "), 1, err)
            self.assertIn("tally-train: error: rank 2 on ", err)
        finally:
            job.kill()
            job.wait()
            job.stdout.close()
            job.stderr.close()


if __name__ == "__main__":
    arguments = list(sys.argv)
    if "--mpi" in arguments:
        MPI = True
        arguments.remove("--mpi")
    at = arguments.index("--train")
    TRAIN = shutil.which(arguments[at + 1]) or ""
    del arguments[at:at + 2]
    place.main(arguments)
