"""tally-train as a wheel: what it asks of a system, and that it trains on systems older and newer than this one.

  train_wheel_test.py DIST SITE_PACKAGES TALLY_TRAIN

DIST has the wheels that `scripts/package train-wheel` made, with and without --gpu and --aarch64 (what those ask for is
read here; train_aarch64_test.py runs them). SITE_PACKAGES holds the torch that
TALLY_TRAIN, this machine's program, was built with. Debian 11 (glibc 2.31, Python 3.9) and 13 are made by debootstrap, or
lie in TALLY_TEST_ROOTS: that needs root and a mirror. An ordinary user installs and trains there, to the losses of
TALLY_TRAIN.
"""

import base64
import contextlib
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

DIST, SITE, TRAIN = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
del sys.argv[1:4]
WHEELS = sorted(DIST.glob("tally_train-*.whl"))
# The newest symbols that RHEL 8 has, as the wheel's tag promises.
LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (8,)}
# What every such system has, and what PyTorch's wheel brings. There is no second C++ library, and none of Debian's.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
OLDEST = {"x86_64": ("GLIBC", "2.2.5"), "aarch64": ("GLIBC", "2.17")}  # which every program there asks for
TORCH = {"libtorch_cpu.so", "libc10.so"}
GPU = {"libtorch_cuda.so", "libc10_cuda.so", "libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13",
       "libnccl.so.2"}
EXAMPLE = ("--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --tokenizer-type bytes "
           "--mock-data --micro-batch-size 4 --train-iters 20 --log-interval 5")  # README's
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # sums in one order, whatever else this machine computes
PYTORCH = "2.11.0"


def ran(*words, **options):
    options = {"capture_output": True, "text": True, "timeout": 900, **options}
    return subprocess.run([str(word) for word in words], **options)


def losses(printed):
    return re.findall(r"lm loss: (\S+)", printed)


def is_gpu(wheel):
    return "+cpu" not in wheel.name


def machine_of(wheel):
    return wheel.stem.split("manylinux_2_28_")[1]


OURS = [wheel for wheel in WHEELS if machine_of(wheel) == platform.machine()]


class Asked(unittest.TestCase):
    """What the programs and modules of every wheel ask for."""

    def each(self):
        for wheel in WHEELS:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
                programs = [path for path in sorted(pathlib.Path(folder).rglob("*"))
                            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
                self.assertGreaterEqual(len(programs), 3 if is_gpu(wheel) else 2)
                yield from ((wheel, program) for program in programs)

    def test_no_symbol_is_newer(self):
        for wheel, program in self.each():
            table = ran("readelf", "-W", "--version-info", program).stdout
            asked = set(re.findall(r"\bName: (GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\b", table))
            self.assertIn(OLDEST[machine_of(wheel)], asked)
            newer = {f"{family}_{number}" for family, number in asked
                     if tuple(map(int, number.split("."))) > LIMITS[family]}
            self.assertEqual(newer, set(), f"{wheel.name}: {program.name}")

    def test_no_other_library_is_needed(self):
        for wheel, program in self.each():
            dynamic = ran("readelf", "-d", program).stdout
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
            other = needed - SYSTEM - TORCH - (GPU if is_gpu(wheel) else set())
            self.assertEqual(other, set(), f"{wheel.name}: {program.name}")
            folders = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
            self.assertEqual([folder for path in folders for folder in path.split(":") if not folder.startswith("$ORIGIN/")], [])

    def test_its_list_is_true(self):
        for wheel in WHEELS:
            with zipfile.ZipFile(wheel) as archive:
                record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
                for line in archive.read(record).decode().splitlines():
                    name, digest, _ = line.rsplit(",", 2)
                    if digest:
                        found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
                        self.assertEqual(digest, f"sha256={found}", name)


def why_not():
    if os.geteuid() != 0:
        return "a root folder needs root"
    if not OURS:
        return f"there is no wheel for {platform.machine()}"
    return "" if shutil.which("debootstrap") else "there is no debootstrap"


def fake_wheel(folder, name, pattern):
    """What PyTorch's and NVIDIA's wheels have, out of the installed ones: nothing is fetched."""
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for file in sorted(SITE.glob(pattern)):
            if file.is_file():
                wheel.write(file, file.relative_to(SITE).as_posix())
    return path


@unittest.skipIf(why_not(), why_not())
class Systems(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = next((wheel for wheel in OURS if not is_gpu(wheel)), OURS[-1])
        done = ran(TRAIN, *EXAMPLE.split(), "--device", "cpu", env={**os.environ, **ONE_THREAD})
        cls.losses = losses(done.stdout)
        if not cls.losses:
            raise AssertionError(done.stdout + done.stderr)

    @contextlib.contextmanager
    def system(self, release):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(os.environ.get("TALLY_TEST_ROOTS", folder)) / release
            if not root.is_dir():
                made = ran("debootstrap", "--variant=minbase", "--include=python3,python3-venv", release, root,
                           os.environ.get("TALLY_TEST_MIRROR", "http://deb.debian.org/debian"))
                if made.returncode != 0:
                    self.skipTest(f"debootstrap failed: {(made.stdout + made.stderr)[-300:]}")
            home = root / "home/user"
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            for wheel in OURS:
                shutil.copy(wheel, home)
            yield root, home
            shutil.rmtree(home)

    def user(self, root, command, bound=()):
        """The command as a user of the system in `root`, without a network."""
        for path in (root / "home/user").rglob("*"):
            os.chown(path, 1000, 1000, follow_symlinks=False)
        os.chown(root / "home/user", 1000, 1000)
        binds = "".join(f"mkdir -p {root}{to}; mount --rbind {what} {root}{to}; " for what, to in bound)
        inside = (f"mount -t proc proc {root}/proc; {binds}"
                  f"exec chroot --userspec=1000:1000 {root} sh -ec 'cd; {command}'")
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/home/user", "LC_ALL": "C.UTF-8", **ONE_THREAD}
        done = ran("unshare", "--mount", "--pid", "--net", "--fork", "--propagation", "private", "sh", "-ec", inside, env=environment)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def trains(self, root, bound=()):
        self.assertIn("tally-train ", self.user(root, "v/bin/tally-train --version"))
        self.assertEqual(losses(self.user(root, f"v/bin/tally-train {EXAMPLE} --device cpu", bound)), self.losses)

    def test_debian_13(self):
        with self.system("trixie") as (root, _):
            site = [(SITE, "/opt/site")]
            # pip finds the torch of another folder, as that of a module.
            self.user(root, "python3 -m venv v; echo /opt/site > $(echo v/lib/python3*/site-packages)/site.pth")
            for wheel in OURS:  # that with GPU kernels starts without a GPU and without a driver
                with self.subTest(wheel=wheel.name):
                    self.user(root, f"v/bin/pip uninstall -y -q tally-train; v/bin/pip install --no-index ./{wheel.name}", site)
                    self.trains(root, site)
            done = ran("chroot", root, "sh", "-c", "/home/user/v/bin/tally-train --mock-data")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("tally-train: error: this Python has no torch 2.11", done.stderr)

    def test_debian_11(self):
        with self.system("bullseye") as (root, home):
            wheels = [fake_wheel(home, f"torch-{PYTORCH}", "torch/lib/*.so*"),
                      fake_wheel(home, "nvidia_cuda_runtime-13.0", "nvidia/cu13/lib/libcudart.so*"),
                      fake_wheel(home, "nvidia_cuda_cupti-13.0", "nvidia/cu13/lib/libcupti.so*")]
            self.user(root, f"python3 -m venv v; v/bin/pip install --no-index ./{self.wheel.name}")
            names = " ".join(path.name for path in wheels)
            self.user(root, f"v/bin/tally-train-libtorch {names}")
            self.trains(root)


if __name__ == "__main__":
    if not WHEELS:
        print(f"SKIPPED: there is no wheel of tally-train in {DIST}: TALLY_DIST={DIST} scripts/package train-wheel makes it")
        sys.exit(77)
    unittest.main()
