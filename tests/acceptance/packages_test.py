"""What scripts/package made is installed, run and removed as people do: the static file, the wheel, Debian's packages.

Debian's packages are installed by apt into a fresh Debian 12 (debootstrap), in namespaces of their own. That needs
root and a mirror; without them those tests are skipped, and say so.
"""

import contextlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, SITE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
DIST = BUILD / "dist"
VERSION = re.search(r"^project\(tally VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]

WORKFLOW = """\
name: small
outpath: small_run
parameterset:
  - {name: size, parameter: [{name: n, type: int, _: "1,2"}]}
step:
  - {name: work, use: size, do: "echo rate: ${n}5"}
patternset:
  - {name: out, pattern: [{name: rate, type: int, _: 'rate: $jube_pat_int'}]}
analyser:
  - {name: read, use: out, analyse: {step: work, file: stdout}}
result:
  - {use: read, table: {name: rates, style: csv, sort: n, column: [n, rate]}}
"""
CLUSTER = """\
name: cluster
outpath: cluster_run
step:
  - {name: work, kind: run, platform: slurm, resources: {nodes: 2, time: 10m}, launch: /bin/true}
"""


def ran(*words, **options):
    options = {"capture_output": True, "text": True, "timeout": 600, **options}
    return subprocess.run([str(word) for word in words], **options)


def one(pattern):
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{DIST}/{pattern}: {len(found)} files; scripts/package makes one")
    return found[0]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        (self.here / "small.yaml").write_text(WORKFLOW)
        (self.here / "cluster.yaml").write_text(CLUSTER)
        (self.here / "home").mkdir()

    def good(self, *words, **options):
        options.setdefault("cwd", self.here)
        done = ran(*words, **options)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def uses(self, tally, **options):
        """The program works, with nothing but itself."""
        self.assertEqual(self.good(tally, "--version", **options), f"tally {VERSION}\n")
        self.assertIn("n,rate\n1,15\n2,25\n", self.good(tally, "run", "small.yaml", **options))
        self.good(tally, "script", "cluster.yaml", "--out", "jobs", **options)


class Static(InFolder):
    def setUp(self):
        super().setUp()
        # Alone, under its own name.
        self.tally = self.here / "tally"
        shutil.copy(one(f"tally-{VERSION}-linux-{platform.machine()}"), self.tally)
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.here / "home")}

    def test_needs_no_library(self):
        self.assertIn("not a dynamic executable", (done := ran("ldd", self.tally)).stdout + done.stderr)
        self.assertLess(self.tally.stat().st_size, 15_000_000)

    def test_works_alone(self):
        self.uses(self.tally, env=self.environment)

    def test_job_scripts_are_those_of_the_shared_program(self):
        def scripts(program, name):
            folder = self.here / name
            folder.mkdir()
            shutil.copy(self.here / "cluster.yaml", folder)
            self.good(program, "script", "cluster.yaml", "--out", "jobs", env=self.environment, cwd=folder)
            return {path.relative_to(folder).as_posix(): path.read_text().replace(str(folder), "FOLDER")
                    for path in (folder / "jobs").rglob("*") if path.is_file()}

        jobs = scripts(self.tally, "one")
        self.assertIn("#SBATCH --nodes=2", "".join(jobs.values()))
        self.assertEqual(jobs, scripts(BUILD / "bin/tally", "two"))

    def test_templates_that_cannot_be_written(self):
        environment = dict(self.environment, XDG_CACHE_HOME="/proc/none")
        done = ran(self.tally, "validate", "cluster.yaml", cwd=self.here, env=environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("set XDG_CACHE_HOME", done.stderr)

    def test_png_is_refused(self):
        (self.here / "data.csv").write_text("n,rate\n1,2\n2,3\n")
        done = ran(self.tally, "plot", "data.csv", "-x", "n", "-y", "rate", "-o", "a.png", cwd=self.here,
                   env=self.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("static program", done.stderr)
        self.assertFalse((self.here / "a.png").exists())
        self.good(self.tally, "plot", "data.csv", "-x", "n", "-y", "rate", "-o", "a.svg", env=self.environment)

    def test_homes_and_groups_are_the_machine_s(self):
        text = WORKFLOW.replace("outpath: small_run", "outpath: ~root/none/small_run")
        (self.here / "home.yaml").write_text(text)
        # No home in the environment either: the name service knows it.
        environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(self.here)}
        home = os.path.expanduser("~root")
        self.assertIn(f"{home}/none", self.good(self.tally, "run", "-n", "home.yaml", env=environment) +
                      ran(self.tally, "status", "home.yaml", cwd=self.here, env=environment).stderr)
        for group, known in (("root", True), ("no such group; echo", False), ("0", False)):
            done = ran(self.tally, "run", "small.yaml", cwd=self.here, env=dict(environment, JUBE_GROUP_NAME=group))
            self.assertEqual("does not exist" not in done.stderr, known, f"{group}: {done.stderr}")

    def test_the_archive(self):
        self.good("tar", "xzf", one(f"tally-{VERSION}-linux-{platform.machine()}.tar.gz"))
        folder = one(f"tally-{VERSION}-linux-{platform.machine()}.tar.gz").name.removesuffix(".tar.gz")
        self.uses(self.here / folder / "bin/tally", env=self.environment)
        self.assertTrue((self.here / folder / "share/man/man1/tally.1").is_file())
        self.assertFalse((self.here / "home/.cache").exists())  # its own templates serve


class Wheel(InFolder):
    def test_in_a_clean_environment(self):
        self.good(sys.executable, "-m", "venv", "venv")
        pip = [self.here / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        self.good(*pip, "install", "--no-index", one("tally_workflows-*.whl"))
        environment = {"PATH": f"{self.here}/venv/bin:/usr/bin:/bin", "HOME": str(self.here / "home")}
        self.uses("tally", env=environment)
        self.assertTrue((self.here / "venv/share/tally/workflows/quickstart.yaml").is_file())
        self.assertFalse((self.here / "home/.cache").exists())
        shown = self.good(*pip, "show", "--files", "tally-workflows")
        self.assertIn(f"Version: {VERSION}", shown)
        self.good(*pip, "check")
        self.good(*pip, "uninstall", "--yes", "tally-workflows")
        self.assertFalse((self.here / "venv/bin/tally").exists())
        self.assertFalse((self.here / "venv/share/tally/workflows/quickstart.yaml").exists())


@unittest.skipUnless(shutil.which("lintian"), "there is no lintian")
class Lintian(unittest.TestCase):
    def test_no_errors(self):
        for package in DIST.glob("*.deb"):
            done = ran("lintian", "--allow-root", "--fail-on", "error", package)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Root:
    """A Debian 12 of its own. `bound`: folders of this machine to be seen there, read-only."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, command, bound=()):
        root = self.folder
        binds = "".join(f"mkdir -p {root}{to}; mount --rbind {what} {root}{to}; " for what, to in bound)
        inside = f"mount -t proc proc {root}/proc; {binds}exec chroot {root} sh -ec '{command}'"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root",
                       "LC_ALL": "C.UTF-8"}
        return ran("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-ec", inside,
                   env=environment)


def why_not():
    if os.geteuid() != 0:
        return "a root folder needs root"
    if not shutil.which("debootstrap"):
        return "there is no debootstrap"
    return ""


def mirror():
    """Where this machine's apt gets Debian from."""
    sources = [*pathlib.Path("/etc/apt").glob("sources.list*"), *pathlib.Path("/etc/apt").glob("sources.list.d/*")]
    for path in sources:
        if path.is_file():
            for line in path.read_text().splitlines():
                if found := re.match(r"(?:URIs:|deb)\s+(?:\[[^]]*\]\s+)?(\S*/debian/?)(?:\s|$)", line):
                    return found[1]
    return "http://deb.debian.org/debian"


@unittest.skipIf(why_not(), why_not())
class Debian(InFolder):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        folder = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory())) / "root"
        base = ran("debootstrap", "--variant=minbase", "bookworm", folder, mirror())
        if base.returncode != 0:
            raise unittest.SkipTest(f"debootstrap failed: {(base.stdout + base.stderr)[-300:]}")
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        (folder / "packages").mkdir()
        for package in DIST.glob("*.deb"):
            shutil.copy(package, folder / "packages")
        (folder / "root/small.yaml").write_text(WORKFLOW)
        (folder / "root/cluster.yaml").write_text(CLUSTER)
        shutil.copy(one(f"tally-{VERSION}-linux-{platform.machine()}"), folder / "root/static")
        for wheel in DIST.glob("*.whl"):
            shutil.copy(wheel, folder / "root")
        cls.root = Root(folder)

    def inside(self, command, **options):
        done = self.root.run(command, **options)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_tally(self):
        self.inside("apt-get install -y -q --no-install-recommends /packages/tally_*.deb")
        self.assertEqual(self.inside("tally --version"), f"tally {VERSION}\n")
        self.assertIn("n,rate\n1,15\n2,25\n", self.inside("cd /root; tally run small.yaml; rm -r small_run"))
        self.inside("cd /tmp; tally run /usr/share/tally/workflows/quickstart.yaml -n --tag slurm")
        self.inside("dpkg --verify tally")
        self.inside("apt-get purge -y -q tally")
        self.assertFalse((self.root.folder / "usr/bin/tally").exists())
        self.assertFalse((self.root.folder / "usr/share/tally").exists())

    def test_the_static_file_and_the_wheel(self):
        self.assertIn("n,rate\n1,15\n2,25\n", self.inside("cd /root; ./static run small.yaml; rm -r small_run"))
        self.inside("apt-get install -y -q --no-install-recommends python3-venv")
        self.inside("cd /root; python3 -m venv v; v/bin/pip install --no-index tally_workflows-*.whl")
        self.assertEqual(self.inside("/root/v/bin/tally --version"), f"tally {VERSION}\n")

    def test_tally_train(self):
        if not list(DIST.glob("tally-train_*.deb")):
            self.skipTest("this build has no tally-train")
        self.inside("apt-get install -y -q --no-install-recommends /packages/tally-train_*.deb")
        self.assertIn(f"tally-train {VERSION}", self.inside("tally-train --version"))
        train = ("tally-train --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 "
                 "--tokenizer-type bytes --mock-data --micro-batch-size 2 --train-iters 2 --log-interval 1")
        without = self.root.run(train)
        self.assertEqual(without.returncode, 2, without.stdout + without.stderr)
        self.assertIn("LibTorch 2.11 was not found", without.stderr)
        bound = [(SITE, "/opt/site-packages")]
        self.assertIn("iteration        2/", self.inside(f"TALLY_SITE_PACKAGES=/opt/site-packages {train}", bound=bound))
        libraries = "$(echo /opt/site-packages/torch/lib /opt/site-packages/nvidia/*/lib | tr \" \" :)"
        self.assertIn("iteration        2/", self.inside(f"LD_LIBRARY_PATH={libraries} {train}", bound=bound))
        self.inside("apt-get purge -y -q tally-train")
        self.assertFalse((self.root.folder / "usr/bin/tally-train").exists())


if __name__ == "__main__":
    if not DIST.is_dir():
        print(f"SKIPPED: there is no {DIST}: TALLY_DIST={DIST} scripts/package makes it")
        sys.exit(77)
    unittest.main()
