#!/usr/bin/env python3
"""A real Slurm of several nodes on this one host, for tests: started in a folder of its own, loopback only, gone at the end.

In a test:        with Cluster(nodes=2) as cluster: subprocess.run(["sbatch", ...], env=cluster.env)
From a shell:     cluster.py [--nodes N] [--cpus N] [--gpus N] [--mpi pmix] [--accounting] -- COMMAND ...

A keeper process (keeper.py) sees to the end, however the test ends.
"""
import argparse
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from processes import environment_of, kill_quietly, processes

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo", "scontrol"]
ACCOUNTING_PROGRAMS = ["slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr"]
KEEPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.py")
SKIPPED = 77  # exit code of a test that cannot run here


def user_name():
    return pwd.getpwuid(os.getuid()).pw_name


def search_path():
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def missing(accounting=False):
    """Why there can be no cluster here; empty when there can."""
    absent = [name for name in PROGRAMS + (ACCOUNTING_PROGRAMS if accounting else [])
              if shutil.which(name, path=search_path()) is None]
    if not absent:
        return ""
    packages = "slurmctld slurmd slurm-client munge" + (" slurmdbd mariadb-server-core mariadb-client-core" if accounting else "")
    return f"{', '.join(absent)}: not installed (Debian: apt-get install {packages})"


def skip_unless_possible(accounting=False):
    reason = missing(accounting)
    if reason:
        print("skipped: no private Slurm here: " + reason)
        sys.exit(SKIPPED)


def wait_for(condition, what, seconds=90):
    """Looks at a condition until it holds and gives its value; an error after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


# --- the cluster -------------------------------------------------------------------------------------------

class Cluster:
    def __init__(self, nodes=2, cpus=8, gpus=0, mpi="none", accounting=False, conf="", min_job_age=300):
        self.nodes = [f"node{i + 1}" for i in range(nodes)]
        self.cpus, self.gpus, self.mpi, self.accounting = cpus, gpus, mpi, accounting
        self.conf, self.min_job_age = conf, min_job_age
        self.directory = ""
        self.keeper = None
        self.up_now = set()

    # The environment of a person on the cluster's login node: nothing of a Slurm around the test.
    @property
    def env(self):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("SLURM_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "JUBE_"))}
        clean["SLURM_CONF"] = f"{self.directory}/slurm.conf"
        clean["PATH"] = search_path()
        return clean

    def __enter__(self):
        for attempt in range(3):
            try:
                self.start()
                return self
            except (OSError, TimeoutError, subprocess.SubprocessError) as error:
                print(f"attempt {attempt + 1} to start a Slurm failed: {error}\n{self.logs()}", file=sys.stderr)
                self.stop()
        raise RuntimeError("no Slurm could be started")

    def __exit__(self, kind, value, trace):
        if kind not in (None, SystemExit):
            print(self.logs(), file=sys.stderr)
        self.stop()

    def start(self):
        self.directory = tempfile.mkdtemp(prefix="tally-slurm-", dir="/tmp")  # short: sockets lie in it
        os.chmod(self.directory, 0o755)
        for name in ("log", "run", "spool", "state", "dev"):
            os.mkdir(f"{self.directory}/{name}", 0o755)
        first = subprocess.Popen([sys.executable, KEEPER, self.directory],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.keeper = first
        first.wait()
        self.write_files(self.free_ports(len(self.nodes) + 3))
        self.up("munged")
        if self.accounting:
            self.start_accounting()
        self.up("slurmctld")
        for node in self.nodes:
            self.up(node)
        wait_for(lambda: self.states() == ["idle"] * len(self.nodes), "all nodes idle", 20)
        if self.accounting:
            wait_for(lambda: self.database_answers("controlport").strip() not in ("", "0"), "the cluster in the database")

    def stop(self):
        if self.keeper is None:
            return
        self.keeper.stdin.close()  # the keeper's sign
        self.keeper.stdout.read()  # until it has ended
        self.keeper.stdout.close()
        self.keeper = None

    def ask(self, request):
        self.keeper.stdin.write(json.dumps(request).encode() + b"\n")
        self.keeper.stdin.flush()
        answer = self.keeper.stdout.readline()
        if not answer:
            raise OSError("the keeper of the cluster has ended")
        return json.loads(answer)["pid"]

    def up(self, name):
        """Starts munged, slurmctld, slurmdbd or a node."""
        d = self.directory
        if name == "munged":
            for file in ("munge", "munge.lock"):
                if os.path.exists(f"{d}/run/{file}"):
                    os.unlink(f"{d}/run/{file}")
            argv = ["munged", "--foreground", "--force", f"--socket={d}/run/munge", f"--key-file={d}/munge.key",
                    f"--pid-file={d}/run/munged.pid", f"--log-file={d}/log/munged.log",
                    f"--seed-file={d}/run/munge.seed", "--num-threads=2"]
        elif name == "slurmctld":
            argv = ["slurmctld", "-D", "-f", f"{d}/slurm.conf"]
        elif name == "slurmdbd":
            argv = ["slurmdbd", "-D"]
        elif name == "mariadb":
            argv = ["mariadbd", "--no-defaults", f"--user={user_name()}", f"--datadir={d}/db",
                    f"--socket={d}/run/mariadb", f"--pid-file={d}/run/mariadb.pid", "--bind-address=127.0.0.1",
                    f"--port={self.ports[-2]}", "--innodb-buffer-pool-size=32M",
                    "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
        else:
            os.makedirs(f"{d}/spool/{name}", exist_ok=True)
            argv = ["slurmd", "-D", "-f", f"{d}/slurm.conf", "-N", name]
        self.ask({"do": "start", "name": name, "argv": argv, "env": self.env})
        self.up_now.add(name)
        if name == "munged":
            wait_for(lambda: os.path.exists(f"{d}/run/munge"), "munged's socket")

    def down(self, name, number=signal.SIGKILL):
        """Ends a daemon; the steps of a node live on."""
        self.ask({"do": "end", "name": name, "signal": int(number)})
        self.up_now.discard(name)

    def running(self, name):
        return name in self.up_now

    def crash(self, node):
        """A node as if unplugged: its slurmd and everything that it runs."""
        self.down(node)
        mark = f"SLURMD_NODENAME={node}".encode()
        ours = f"SLURM_CONF={self.directory}/slurm.conf".encode()
        tasks = [pid for pid in processes() if {mark, ours} <= set(environment_of(pid))]
        everyone = processes()
        for pid in tasks:  # a task's parent is its slurmstepd
            parent = everyone.get(pid, (0, ""))[0]
            if self.command(parent) == "slurmstepd":
                kill_quietly(parent, signal.SIGKILL)
        for pid in tasks:
            kill_quietly(pid, signal.SIGKILL)

    @staticmethod
    def command(pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="latin-1") as comm:
                return comm.read().strip()
        except OSError:
            return ""

    def run(self, *words, **options):
        """A command of Slurm's, as somebody at the terminal gives it; its standard output."""
        return subprocess.run(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True, timeout=options.get("seconds", 30)).stdout

    def states(self):
        try:
            return self.run("sinfo", "-h", "-N", "-p", "debug", "-o", "%t", seconds=5).split()
        except subprocess.SubprocessError:
            return []

    def jobs(self):
        """(id, name, state) of what is queued or runs."""
        lines = self.run("squeue", "-h", "-o", "%i|%j|%T").splitlines()
        return [tuple(line.split("|")) for line in lines]

    def logs(self):
        text = ""
        folder = f"{self.directory}/log"
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()[-8:]
            text += "".join(f"{name}: {line}\n" for line in lines)
        return text

    @staticmethod
    def free_ports(count):
        """Below the range from which the kernel gives ports to clients, and below tally-train's own (12000 to 31999, by the
        job's name), which tests beside this cluster use."""
        while True:
            base = random.randrange(3000, 11900)
            try:
                for port in range(base, base + count):
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", port))
                return list(range(base, base + count))
            except OSError:
                continue

    def write_files(self, ports):
        self.ports = ports
        with open(os.open(f"{self.directory}/munge.key", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as key:
            key.write(os.urandom(128))
        if self.accounting:
            text = DBD_CONF.format(**self.words())
            with open(os.open(f"{self.directory}/slurmdbd.conf", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)
        with open(f"{self.directory}/slurm.conf", "w", encoding="utf-8") as file:
            file.write(SLURM_CONF.format(**self.words()))
            file.write(ACCOUNTING.format(**self.words()) if self.accounting else NO_ACCOUNTING)
            host = self.words()["host"]
            for i, node in enumerate(self.nodes):
                gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
                file.write(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1 + i]} "
                           f"CPUs={self.cpus} RealMemory=16000{gres} State=UNKNOWN\n")
            file.write("PartitionName=debug Nodes=ALL Default=YES DefaultTime=10 MaxTime=60 State=UP\n" + self.conf)
        with open(f"{self.directory}/gres.conf", "w", encoding="utf-8") as file:
            for i in range(self.gpus):  # a character device satisfies slurmd
                os.symlink("/dev/null", f"{self.directory}/dev/nvidia{i}")
            if self.gpus:
                file.write(f"Name=gpu File={self.directory}/dev/nvidia[0-{self.gpus - 1}]\n")
        with open(f"{self.directory}/cgroup.conf", "w", encoding="utf-8") as file:
            file.write("CgroupPlugin=cgroup/v1\n")  # asked for, never used

    def words(self):
        return {"d": self.directory, "me": user_name(), "host": socket.gethostname().split(".")[0],
                "port": self.ports[0], "dbd_port": self.ports[-1], "db_port": self.ports[-2],
                "mpi": self.mpi, "min_job_age": self.min_job_age}

    def start_accounting(self):
        d = self.directory
        self.run("mariadb-install-db", "--no-defaults", f"--datadir={d}/db", f"--user={user_name()}",
                 "--auth-root-authentication-method=normal", "--skip-test-db", seconds=60)
        self.up("mariadb")
        wait_for(lambda: os.path.exists(f"{d}/run/mariadb"), "MariaDB's socket")
        self.run("mariadb", "--no-defaults", "-S", f"{d}/run/mariadb", "-u", "root", "-e",
                 "create or replace user slurm@'%' identified by 'slurm'; grant all on slurm.* to slurm@'%'")
        self.up("slurmdbd")
        wait_for(self.database_answers, "slurmdbd answers")
        subprocess.run(["sacctmgr", "-i", "add", "cluster", "tally"], env=self.env, stdout=subprocess.DEVNULL,
                       timeout=30, check=True)

    def database_answers(self, column="cluster"):
        try:
            return self.run("sacctmgr", "-n", "-P", "show", "cluster", f"format={column}", seconds=5) or "\n"
        except subprocess.SubprocessError:
            return ""


# Job ids differ between the clusters of a host: tally-train makes its port from the job's id.
SLURM_CONF = """ClusterName=tally
SlurmctldHost={host}(127.0.0.1)
SlurmUser={me}
SlurmdUser={me}
AuthType=auth/munge
AuthInfo=socket={d}/run/munge
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={port}
FirstJobId={port}
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
TmpFS={d}/spool/%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd.%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault={mpi}
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
InactiveLimit=0
MinJobAge={min_job_age}
MaxJobCount=20000
MaxArraySize=10001
SlurmctldTimeout=5
SlurmdTimeout=5
MessageTimeout=10
TreeWidth=64
"""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n"
ACCOUNTING = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={d}/run/munge
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
"""
DBD_CONF = """AuthType=auth/munge
AuthInfo=socket={d}/run/munge
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser={me}
LogFile={d}/log/slurmdbd.log
PidFile={d}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={db_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""


def main():
    parser = argparse.ArgumentParser(description="Runs a command on a private Slurm cluster of its own.")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=8, help="of each node; more than there are is fine")
    parser.add_argument("--gpus", type=int, default=0, help="of each node; they are /dev/null")
    parser.add_argument("--mpi", default="none", help="MpiDefault: none or pmix")
    parser.add_argument("--accounting", action="store_true", help="with slurmdbd, so that sacct works")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    skip_unless_possible(arguments.accounting)
    with Cluster(arguments.nodes, arguments.cpus, arguments.gpus, arguments.mpi, arguments.accounting) as cluster:
        return subprocess.run(arguments.command, env=cluster.env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
