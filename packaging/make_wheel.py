#!/usr/bin/env python3
"""packaging/make_wheel.py TREE VERSION FOLDER: a Python wheel of an installed static tally.

TREE is what `cmake --install` made of the static build. `pip install` of the wheel puts bin/tally, its workflows,
templates, manual page and completions into the environment. The program needs no Python. The same input gives the
same bytes.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

NAME = "tally_workflows"
# A static program needs no C library of the machine: glibc's and musl's are the same to it.
TAG = "py3-none-manylinux2014_{0}.musllinux_1_1_{0}"
MACHINES = {0x3e: "x86_64", 0xb7: "aarch64"}  # by e_machine of the program's ELF header
METADATA = """Metadata-Version: 2.1
Name: tally-workflows
Version: {version}
Summary: Workflows of benchmarks: parameters, jobs, results, tables and charts
License: Apache-2.0
Requires-Python: >=3.7
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Benchmark
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: tally make_wheel
Root-Is-Purelib: false
"""


def tag_of(program):
    machine = int.from_bytes(program.read_bytes()[18:20], "little")
    if machine not in MACHINES:
        sys.exit(f"make_wheel.py: {program} is of machine {machine:#x}, for which wheels have no name here")
    return TAG.format(MACHINES[machine])


def files_of(tree, version, tag):
    """(path in the wheel, bytes, whether it may be executed), in order."""
    data, info = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info"
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        # What a Python environment has no use for, or lies in dist-info.
        if not path.is_file() or name.startswith("share/doc/"):
            continue
        where = f"scripts/{name[4:]}" if name.startswith("bin/") else f"data/{name}"
        yield f"{data}/{where}", path.read_bytes(), bool(path.stat().st_mode & 0o100)
    doc = tree / "share/doc/tally"
    readme = (doc / "README.md").read_text()
    yield f"{info}/LICENSE", (doc / "LICENSE").read_bytes(), False
    yield f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode(), False
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in tag.split("-")[2].split("."))
    yield f"{info}/WHEEL", (WHEEL + tags).encode(), False


def write_wheel(tree, version, folder):
    tag = tag_of(tree / "bin/tally")
    path = folder / f"{NAME}-{version}-{tag}.whl"
    record, info = "", f"{NAME}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, executable=False):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, content)

        for name, content, executable in files_of(tree, version, tag):
            add(name, content, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        add(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(write_wheel(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])))
