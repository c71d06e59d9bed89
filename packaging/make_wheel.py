#!/usr/bin/env python3
"""packaging/make_wheel.py TREE VERSION FOLDER: a Python wheel of what `cmake --install` put into TREE.

That is a static tally: `pip install` then puts bin/tally, its workflows, templates, manual page and completions into the
environment. Or a tally-train, linked by cmake/wheel.cmake: the wheel has a package `tally_train` with the programs and
modules, and commands that start them. The programs need no Python. The same input gives the same bytes.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

# A static program needs no C library of the machine: glibc's and musl's are the same to it.
STATIC_TAG = "py3-none-manylinux2014_{0}.musllinux_1_1_{0}"
TRAIN_TAG = "py3-none-manylinux_2_28_{0}"  # as make_sysroot.py's limits
MACHINES = {0x3e: "x86_64", 0xb7: "aarch64"}  # by e_machine of the program's ELF header
SOURCES = pathlib.Path(__file__).resolve().parent
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.7
{requires}Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Benchmark
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: tally make_wheel
Root-Is-Purelib: false
"""
COMMANDS = """[console_scripts]
tally-train = tally_train:main
tally-train-libtorch = tally_train.libtorch:main
"""


def tag_of(program, tag):
    machine = int.from_bytes(program.read_bytes()[18:20], "little")
    if machine not in MACHINES:
        sys.exit(f"make_wheel.py: {program} is of machine {machine:#x}, for which wheels have no name here")
    return tag.format(MACHINES[machine])


class StaticTally:
    name, summary, requires = "tally_workflows", "Workflows of benchmarks: parameters, jobs, results, tables and charts", ""
    tag = STATIC_TAG
    program = "bin/tally"

    @staticmethod
    def where(path, data):
        return f"{data}/scripts/{path[4:]}" if path.startswith("bin/") else f"{data}/data/{path}"

    @staticmethod
    def added():
        return ()


class TallyTrain:
    name, summary = "tally_train", "Training benchmark of language models in C++ on LibTorch"
    # An older Python has no such torch: tally-train-libtorch fetches its libraries.
    requires = "Requires-Dist: torch==2.11.*; python_version >= \"3.10\"\n"
    tag = TRAIN_TAG
    program = "bin/tally-train"

    @staticmethod
    def where(path, data):
        for folder in ("bin/", "lib/tally/"):
            if path.startswith(folder):
                return f"tally_train/bin/{path[len(folder):]}"
        return f"{data}/data/{path}"

    @staticmethod
    def added():
        """(path in the wheel or below its dist-info, bytes)."""
        yield "tally_train/__init__.py", (SOURCES / "wheel/tally_train.py").read_bytes()
        yield "tally_train/libtorch.py", (SOURCES / "wheel/libtorch.py").read_bytes()


def files_of(kind, tree, version, tag):
    """(path in the wheel, bytes, whether it may be executed), in order."""
    data, info = f"{kind.name}-{version}.data", f"{kind.name}-{version}.dist-info"
    for name, content in kind.added():
        yield name, content, False
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        # What a Python environment has no use for, or lies in dist-info.
        if not path.is_file() or name.startswith("share/doc/"):
            continue
        yield kind.where(name, data), path.read_bytes(), bool(path.stat().st_mode & 0o100)
    root = SOURCES.parent
    metadata = METADATA.format(name=kind.name.replace("_", "-"), version=version, summary=kind.summary, requires=kind.requires,
                               readme=(root / "README.md").read_text())
    yield f"{info}/LICENSE", (root / "LICENSE").read_bytes(), False
    yield f"{info}/METADATA", metadata.encode(), False
    if kind is TallyTrain:
        yield f"{info}/entry_points.txt", COMMANDS.encode(), False
        for path in sorted((tree / "share/doc/linked").glob("*")):
            yield f"{info}/licenses/{path.name}", path.read_bytes(), False
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in tag.split("-")[2].split("."))
    yield f"{info}/WHEEL", (WHEEL + tags).encode(), False


def write_wheel(tree, version, folder):
    kind = TallyTrain if (tree / TallyTrain.program).exists() else StaticTally
    tag = tag_of(tree / kind.program, kind.tag)
    path = folder / f"{kind.name}-{version}-{tag}.whl"
    record, info = "", f"{kind.name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, executable=False):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, content)

        for name, content, executable in files_of(kind, tree, version, tag):
            add(name, content, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        add(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(write_wheel(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])))
