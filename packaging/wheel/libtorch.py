"""tally-train-libtorch [--gpu] [WHEEL...]: LibTorch for a Python that PyTorch's wheels are not made for.

Fetches PyTorch's wheel and those of NVIDIA that it needs by pip, and unpacks their libraries, which are all that tally-train
needs, beside it. No Python of theirs is installed. WHEEL: files that are here already, which are not fetched again.
  --gpu   also what its GPU half needs (4 GB); the default where tally-train has GPU kernels
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

TORCH = "torch==2.11.0"
FOR_CPU = ("nvidia-cuda-runtime==13.0.*", "nvidia-cuda-cupti==13.0.*")  # libtorch_cpu asks for these also without a GPU
PYTHON = ("--python-version", "311", "--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none")
HERE = pathlib.Path(__file__).resolve().parent
# What libtorch_cpu needs: on aarch64 NVIDIA's and Arm's libraries of linear algebra, too.
CPU_LIBRARIES = re.compile(r"torch/lib/(libtorch_cpu|libc10|libgomp[^/]*|libnvpl_[^/]*|libarm_compute[^/]*|libgfortran[^/]*)\.so[^/]*$")
LIBRARIES = re.compile(r"(torch|nvidia/[^/]+)/lib/[^/]+\.so[^/]*$")


def fetch(requirements, folder, *more, machine=platform.machine()):
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(28, 16, -1)]
    platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:", "-d", str(folder)]
    command += [*PYTHON, *(word for name in platforms for word in ("--platform", name)), *more, *requirements]
    if subprocess.run(command).returncode != 0:
        sys.exit(f"tally-train-libtorch: error: pip could not fetch {' '.join(requirements)}")


def needed_of(wheel):
    """NVIDIA's packages among the requirements of PyTorch's wheel."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    wanted = (line[len("Requires-Dist: "):].split(";")[0].strip() for line in lines if line.startswith("Requires-Dist: "))
    return [name for name in wanted if name.startswith(("nvidia-", "cuda-toolkit"))]


def unpack(wheel, target, pattern):
    with zipfile.ZipFile(wheel) as archive:
        for name in filter(pattern.match, archive.namelist()):
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as packed, open(path, "wb") as out:
                shutil.copyfileobj(packed, out, 1 << 20)


def main():
    words = sys.argv[1:]
    if "-h" in words or "--help" in words:
        print(__doc__.strip())
        return
    gpu = "--gpu" in words or (HERE / "bin/tally_nccl.so").exists()
    given = [pathlib.Path(word) for word in words if word != "--gpu"]
    target, temporary = HERE / "libtorch", HERE / "libtorch.new"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
    except OSError as error:
        sys.exit(f"tally-train-libtorch: error: {temporary} cannot be written: {error.strerror}; install tally-train in an environment of yours")
    with tempfile.TemporaryDirectory(dir=temporary) as folder:
        folder = pathlib.Path(folder)
        torch = next((wheel for wheel in given if wheel.name.startswith("torch-")), None)
        if torch is None:
            print(f"Fetching {TORCH} (0.5 GB)", flush=True)
            fetch([TORCH], folder, "--no-deps")
            torch = next(folder.glob("torch-*.whl"))
        have = {wheel.name.split("-")[0].replace("_", "-") for wheel in given}
        wanted = [name for name in (needed_of(torch) if gpu else FOR_CPU) if re.split(r"[=\[<> ]", name)[0] not in have]
        if wanted:
            print(f"Fetching {' '.join(wanted)}", flush=True)
            fetch(wanted, folder)
        print("Unpacking their libraries", flush=True)
        unpack(torch, temporary, LIBRARIES if gpu else CPU_LIBRARIES)
        for wheel in [*given, *folder.glob("*.whl")]:
            if wheel != torch:
                unpack(wheel, temporary, LIBRARIES)
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
    print(f"tally-train has LibTorch in {target}")
