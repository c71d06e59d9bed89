#!/usr/bin/env python3
"""packaging/make_sysroot.py SYSROOT [PREFIX]: finishes a folder of unpacked Debian packages, so that what is linked against
it runs on older systems too (scripts/setup --wheel; cmake/wheel.cmake). PREFIX is that of a cross compiler's programs, as
aarch64-linux-gnu-.

The C and C++ libraries in it are replaced by stubs: their symbols without any code, and of these only the versions that the
oldest system has (LIMITS: RHEL 8's, which is also what PyTorch's wheel asks for). A newer function is then an error of the
linker, and a function that has an older version too gets that one. What the headers of a newer libstdc++ need beyond that
comes out of the compiler's libstdc++.a, as in Red Hat's toolsets: the rest is the system's libstdc++, which LibTorch has, too.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (8,)}
LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libgcc_s.so.1",
             "libstdc++.so.6")
OF_MACHINE = {"x86_64-linux-gnu": ("ld-linux-x86-64.so.2", "libmvec.so.1"), "aarch64-linux-gnu": ("ld-linux-aarch64.so.1",)}
PREFIX = sys.argv[2] if len(sys.argv) > 2 else ""
# What the compiler's libstdc++.a asks of a newer glibc: whether there has only been one thread, which no one knows here.
COMPATIBLE = "__attribute__((visibility(\"hidden\"))) char __libc_single_threaded = 0;\n"
SECTIONS = {"OBJECT": (".bss", "object"), "TLS": ('.tbss,"awT",@nobits', "tls_object")}  # the rest are functions
SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+\s+(\S+)\s+(\S+)\s+(\S+)\s+DEFAULT\s+(\S+)\s+(\S+)$")


def within_limits(version):
    family, _, number = version.partition("_")
    if family not in LIMITS or not re.fullmatch(r"[\d.]+", number):
        return False
    return tuple(int(part) for part in number.split(".")) <= LIMITS[family]


def number_of(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def symbols_of(library):
    """name -> {version: (default, type, size)}, of the versions within the limits."""
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    found, defaults = {}, set()
    for match in filter(None, map(SYMBOL.match, listed.splitlines())):
        size, kind, bind, section, name = match.groups()
        name, _, version = name.partition("@")
        if section in ("UND", "ABS") or bind == "LOCAL" or not version:
            continue
        if version.startswith("@"):
            defaults.add(name)
        if within_limits(version.lstrip("@")):
            found.setdefault(name, {})[version.lstrip("@")] = (version.startswith("@"), kind, int(size, 0))
    for name, versions in found.items():
        # Its default is newer: the newest of the others takes its place.
        if name in defaults and not any(default for default, _, _ in versions.values()):
            newest = max(versions, key=number_of)
            versions[newest] = (True, *versions[newest][1:])
    return found


def write_stub(library, name, scratch):
    """Replaces the library by a stub whose soname is `name`."""
    symbols = symbols_of(library)
    versions = sorted({version for found in symbols.values() for version in found}, key=lambda v: (v.split("_")[0], number_of(v)))
    lines, count = [], 0
    for symbol, found in sorted(symbols.items()):
        for version, (default, kind, size) in found.items():
            stub = f"tally_stub_{count}"
            count += 1
            section, type_ = SECTIONS.get(kind, (".text", "function"))
            lines += [f".section {section}", ".balign 32", f".globl {stub}", f".type {stub},@{type_}", f"{stub}:",
                      f".skip {max(size, 1) if kind in SECTIONS else 1}", f".size {stub},{size}",
                      f".symver {stub},{symbol}{'@@' if default else '@'}{version}"]
    (scratch / "stub.s").write_text("\n".join(lines) + "\n.section .note.GNU-stack,\"\",@progbits\n")
    (scratch / "stub.map").write_text("".join(f"{version} {{ local: tally_stub_*; }};\n" if i == 0 else f"{version} {{ }};\n"
                                              for i, version in enumerate(versions)))
    out = scratch / name
    subprocess.run([PREFIX + "gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={scratch / 'stub.map'}",
                    scratch / "stub.s", "-o", out], check=True)
    library.unlink()
    shutil.copy(out, library)


def smaller_data(data):
    """ICU's data with the rules of sentences alone, of 30 MB: a table of (name, start), after a header, and what it names.
    The properties and normal forms of characters are in ICU's code."""
    start, = struct.unpack_from("<H", data)
    count, = struct.unpack_from("<I", data, start)
    table = [struct.unpack_from("<II", data, start + 4 + 8 * i) for i in range(count)]
    ends = [begin for _, begin in table[1:]] + [len(data) - start]
    kept = []
    for (at, begin), end in zip(table, ends):
        name = data[start + at:data.index(b"\0", start + at)]
        if re.search(rb"/brkitr/[^/]*\.(res|brk)$", name):
            kept.append((name + b"\0", data[start + begin:start + end]))
    names, contents, at = b"", b"", 4 + 8 * len(kept)
    first = -(-(at + sum(len(name) for name, _ in kept)) // 16) * 16
    entries = b""
    for name, content in kept:
        entries += struct.pack("<II", at + len(names), first + len(contents))
        names += name
        contents += content + bytes(-len(content) % 16)
    body = struct.pack("<I", len(kept)) + entries + names
    return data[:start] + body + bytes(first - len(body)) + contents


def write_smaller_data(archive, scratch):
    subprocess.run([PREFIX + "ar", "x", archive.name, "--output", scratch], cwd=archive.parent, check=True)
    member = next(scratch.glob("icudt*_dat.o"))
    subprocess.run([PREFIX + "objcopy", "-O", "binary", "--only-section=.rodata", member, scratch / "icu.dat"], check=True)
    (scratch / "icu.dat").write_bytes(smaller_data((scratch / "icu.dat").read_bytes()))
    symbol = subprocess.run([PREFIX + "nm", member], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
    (scratch / "icu.s").write_text(f".section .rodata\n.balign 16\n.globl {symbol}\n.type {symbol},@object\n{symbol}:\n"
                                   f".incbin \"{scratch / 'icu.dat'}\"\n.size {symbol}, . - {symbol}\n"
                                   ".section .note.GNU-stack,\"\",@progbits\n")
    subprocess.run([PREFIX + "gcc", "-c", scratch / "icu.s", "-o", member], check=True)
    archive.unlink()
    subprocess.run([PREFIX + "ar", "rcs", archive, member], check=True)


def link_instead_of(link, root):
    """A link that names a path of the whole system names the same one in the folder."""
    target = link.readlink()
    if target.is_absolute():
        link.unlink()
        link.symlink_to(os.path.relpath(root / target.relative_to("/"), link.parent))


def asked_compiler(question):
    return subprocess.run([PREFIX + "g++", question], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main(root):
    multiarch = asked_compiler("-print-multiarch")
    archive = asked_compiler("-print-file-name=libstdc++.a")
    libraries = root / "usr/lib" / multiarch
    # Packages for building have a link for the linker, and what it names is not here: the archive is taken.
    for link in (*libraries.glob("*.so"), *root.glob("lib64/*")):
        if link.is_symlink():
            link_instead_of(link, root)
            if not link.exists():
                link.unlink()
    scratch = root / "stubs"
    scratch.mkdir(exist_ok=True)
    for name in (*OF_MACHINE[multiarch], *LIBRARIES):
        for folder in ("lib", "usr/lib", "lib64"):
            library = next((path for path in ((root / folder / multiarch / name), (root / folder / name)) if path.is_file()), None)
            if library is not None:
                write_stub(library.resolve(), name, scratch)
                break
        else:
            sys.exit(f"make_sysroot.py: {root} has no {name}")
    write_smaller_data(libraries / "libicudata.a", scratch)
    # Found first by cmake/wheel.cmake.
    link = root / "link"
    link.mkdir(exist_ok=True)
    (scratch / "compatible.c").write_text(COMPATIBLE)
    subprocess.run([PREFIX + "gcc", "-O2", "-fPIC", "-c", scratch / "compatible.c", "-o", link / "compatible.o"], check=True)
    (link / "libtally_compatible.a").unlink(missing_ok=True)
    subprocess.run([PREFIX + "ar", "rcs", link / "libtally_compatible.a", link / "compatible.o"], check=True)
    shutil.copy(archive, link / "libstdc++.a")
    (link / "libstdc++.so").write_text("INPUT(-l:libstdc++.so.6 -l:libstdc++.a -l:libtally_compatible.a)\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
