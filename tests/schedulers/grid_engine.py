#!/usr/bin/env python3
"""A real Grid Engine of one host, for tests: started in a folder of its own, with ports of its own, gone at the end.

In a test:        with GridEngine() as cluster: subprocess.run(["qsub", ...], env=cluster.env)
From a shell:     grid_engine.py COMMAND ...

Debian's wrappers ask for the machine's architecture at each call; the programs behind them are called here.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "slurm"))
import cluster as slurm  # noqa: E402
from cluster import KEEPER, wait_for  # noqa: E402
from processes import environment_of, kill_quietly, processes  # noqa: E402

PROGRAMS = "/usr/lib/gridengine"
SHARED = "/usr/share/gridengine"
NEEDED = ["sge_qmaster", "sge_execd", "sge_shepherd", "qsub", "qstat", "qdel", "qacct", "qconf", "spoolinit", "spooldefaults"]


def missing():
    """Why there can be no Grid Engine here; empty when there can."""
    absent = [name for name in NEEDED if not os.access(f"{PROGRAMS}/{name}", os.X_OK)]
    if absent or not os.path.exists(f"{SHARED}/default-configuration"):
        return f"{', '.join(absent) or SHARED}: not installed (Debian: apt-get install gridengine-master gridengine-exec gridengine-client)"
    if os.getuid() != 0:
        return "its daemons need root"
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return f"the name of this host, {socket.gethostname()}, does not resolve"
    return ""


def skip_unless_possible():
    reason = missing()
    if reason:
        print("skipped: no private Grid Engine here: " + reason)
        sys.exit(slurm.SKIPPED)


class GridEngine(slurm.Cluster):
    def __init__(self, slots=16, conf=""):
        super().__init__(nodes=1)
        self.slots, self.conf = slots, conf
        self.host = socket.gethostname()

    @property
    def env(self):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("SGE_", "SLURM_", "SBATCH_", "JUBE_", "JOB_"))}
        return {**clean, "SGE_ROOT": self.directory, "SGE_CELL": "cell", "SGE_QMASTER_PORT": str(self.ports[0]),
                "SGE_EXECD_PORT": str(self.ports[1]), "PATH": f"{PROGRAMS}:{slurm.search_path()}"}

    def start(self):
        self.directory = tempfile.mkdtemp(prefix="tally-sge-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        for name in ("log", "cell/common", "spool/qmaster/job_scripts", "spool/execd"):
            os.makedirs(f"{self.directory}/{name}", 0o755)
        first = subprocess.Popen([sys.executable, KEEPER, self.directory],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.keeper = first
        first.wait()
        self.write_files(self.free_ports(2))
        self.up("qmaster")
        wait_for(lambda: self.quietly("qconf", "-sh"), "qmaster answers", 20)
        self.quietly("qconf", "-ah", self.host)
        self.run("qconf", "-as", self.host)
        self.up("execd")
        wait_for(lambda: self.host in (self.quietly("qconf", "-sel") or ""), "the host is known", 20)
        # GPUs are what a site calls so, and counts.
        complexes = self.run("qconf", "-sc")
        pathlib.Path(f"{self.directory}/complexes").write_text(complexes + "gpu gpu INT <= YES YES 0 0\n")
        self.run("qconf", "-Mc", f"{self.directory}/complexes")
        self.run("qconf", "-rattr", "exechost", "complex_values", "gpu=8", self.host)
        for option, file in (("-Ap", "pe"), ("-Aq", "queue"), ("-Msconf", "scheduling")):
            self.run("qconf", option, f"{self.directory}/{file}")
        wait_for(self.host_is_up, "the host takes jobs", 20)

    def quietly(self, *words):
        try:
            return self.run(*words, seconds=10) or "\n"
        except (OSError, subprocess.SubprocessError):
            return ""

    def host_is_up(self):
        """qhost has its load, and no queue of it is in state u(nknown)."""
        return any(line.split()[6:7] not in (["-"], []) for line in (self.quietly("qhost") or "").splitlines()
                   if line.startswith(self.host + " ")) and not self.queue_state()

    def queue_state(self):
        lines = [line.split() for line in (self.quietly("qstat", "-f") or "").splitlines() if line.startswith("all.q@")]
        return lines[0][5] if lines and len(lines[0]) > 5 else ""

    def up(self, name):
        """Starts qmaster or execd."""
        if name == "qmaster":
            lock = f"{self.directory}/spool/qmaster/qmaster.pid"
            if os.path.exists(lock):
                os.unlink(lock)
        self.ask({"do": "start", "name": name, "argv": [f"{PROGRAMS}/sge_{name}"], "env": {**self.env, "SGE_ND": "1"}})
        self.up_now.add(name)

    def crash(self, node="execd"):
        """The host as if unplugged: execd and everything that it runs."""
        self.down(node)
        ours = f"SGE_ROOT={self.directory}".encode()
        for pid in processes():
            if ours in environment_of(pid) and (self.command(pid) == "sge_shepherd" or self.in_job(pid)):
                kill_quietly(pid, signal.SIGKILL)

    @staticmethod
    def in_job(pid):
        return any(entry.startswith(b"JOB_ID=") for entry in environment_of(pid))

    def jobs(self):
        """(id, name, state) of what is queued or runs."""
        found = []
        for line in self.run("qstat", "-xml", "-u", "*").splitlines():
            value = line.split(">", 1)[-1].split("<")[0]
            if "<JB_job_number>" in line:
                found.append([value, "", ""])
            elif "<JB_name>" in line:
                found[-1][1] = value
            elif "<state>" in line:
                found[-1][2] = value
        return [tuple(job) for job in found]

    def configure(self, **values):
        """Changes the global configuration."""
        lines = [line.split(None, 1) for line in self.run("qconf", "-sconf").splitlines()
                 if len(line.split(None, 1)) == 2 and not line.startswith("#")]
        os.makedirs(f"{self.directory}/conf", exist_ok=True)
        with open(f"{self.directory}/conf/global", "w", encoding="utf-8") as file:
            file.writelines(f"{name} {values.get(name, text)}\n" for name, text in lines)
        self.run("qconf", "-Mconf", f"{self.directory}/conf/global")

    def write_files(self, ports):
        self.ports = ports
        d = self.directory
        for name in ("bin", "lib", "util", "utilbin"):
            os.symlink(f"/var/lib/gridengine/{name}", f"{d}/{name}")
        address = socket.gethostbyname(self.host)
        try:
            others = {socket.gethostbyaddr(address)[0]} - {self.host}
        except OSError:
            others = set()
        common = {"act_qmaster": self.host, "cluster_name": "tally", "host_aliases": " ".join([self.host, *sorted(others)]),
                  "bootstrap": BOOTSTRAP.format(d=d)}
        for name, text in common.items():
            pathlib.Path(f"{d}/cell/common/{name}").write_text(text + "\n")
        configuration = pathlib.Path(f"{SHARED}/default-configuration").read_text()
        for name, value in {"execd_spool_dir": f"{d}/spool/execd", "min_uid": "0", "min_gid": "0",
                            "load_report_time": "00:00:01", "max_unheard": "00:00:03", "mailer": "/bin/true",
                            "reporting_params": "accounting=true reporting=false accounting_flush_time=00:00:00 "
                                                "flush_time=00:00:01 joblog=false sharelog=00:00:00"}.items():
            lines = [line for line in configuration.splitlines() if line.split()[:1] != [name]]
            configuration = "\n".join([*lines, f"{name} {value}"]) + "\n"
        files = {"configuration": configuration, "pe": PE, "queue": QUEUE.format(host=self.host, slots=self.slots),
                 "scheduling": SCHEDULING}
        for name, text in files.items():
            pathlib.Path(f"{d}/{name}").write_text(text)
        spool = f"{d}/cell/common;{d}/spool/qmaster"
        self.run("spoolinit", "classic", "libspoolc", spool, "init")
        self.run("spooldefaults", "configuration", f"{d}/configuration")
        for kind in ("complexes", "usersets"):
            self.run("spooldefaults", kind, f"{SHARED}/util/resources/{'centry' if kind == 'complexes' else kind}")
        self.run("spooldefaults", "managers", slurm.user_name())

    def logs(self):
        spool = pathlib.Path(self.directory) / "spool"
        text = super().logs()
        for path in sorted(spool.glob("**/messages")) if self.directory else []:
            text += "".join(f"{path.relative_to(spool)}: {line}\n" for line in path.read_text(errors="replace").splitlines()[-8:])
        return text


BOOTSTRAP = """admin_user none
default_domain none
ignore_fqdn false
spooling_method classic
spooling_lib libspoolc
spooling_params {d}/cell/common;{d}/spool/qmaster
binary_path /usr/sbin
qmaster_spool_dir {d}/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1"""

PE = """pe_name mpi
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $pe_slots
control_slaves TRUE
job_is_first_task TRUE
urgency_slots min
accounting_summary TRUE
qsort_args NONE
"""

QUEUE = """qname all.q
hostlist {host}
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
ckpt_list NONE
pe_list mpi
rerun FALSE
slots {slots}
tmpdir /tmp
shell /bin/bash
prolog NONE
epilog NONE
shell_start_mode unix_behavior
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:60
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
""" + "".join(f"{kind}_{limit} INFINITY\n" for limit in ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")
              for kind in "sh")

SCHEDULING = """algorithm default
schedule_interval 0:0:1
maxujobs 0
queue_sort_method load
job_load_adjustments NONE
load_adjustment_decay_time 0:0:0
load_formula np_load_avg
schedd_job_info true
flush_submit_sec 1
flush_finish_sec 1
params none
reprioritize_interval 0:0:0
halftime 168
usage_weight_list cpu=1.000000,mem=0.000000,io=0.000000
compensation_factor 5.000000
weight_user 0.250000
weight_project 0.250000
weight_department 0.250000
weight_job 0.250000
weight_tickets_functional 0
weight_tickets_share 0
share_override_tickets TRUE
share_functional_shares TRUE
max_functional_jobs_to_schedule 200
report_pjob_tickets TRUE
max_pending_tasks_per_job 50
halflife_decay_list none
policy_hierarchy OFS
weight_ticket 0.500000
weight_waiting_time 0.278000
weight_deadline 3600000.000000
weight_urgency 0.500000
weight_priority 0.000000
max_reservation 0
default_duration INFINITY
"""


def main():
    skip_unless_possible()
    with GridEngine() as cluster:
        return subprocess.run(sys.argv[1:] or ["bash"], env=cluster.env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
