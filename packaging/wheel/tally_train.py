"""tally-train out of a Python wheel: finds LibTorch, then becomes the program. Python has no part in the training.

LibTorch is looked for in this order:
  1. TALLY_SITE_PACKAGES, a folder that holds torch/
  2. beside this package, where pip installs torch, or where tally-train-libtorch unpacked it
  3. where this Python finds torch
"""

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBTORCH = "torch/lib/libtorch_cpu.so"


def site_packages():
    """The folder that holds torch/, or None where the program finds it by itself."""
    chosen = os.environ.get("TALLY_SITE_PACKAGES", "")
    if chosen:
        if not os.path.exists(os.path.join(chosen, LIBTORCH)):
            sys.exit(f"tally-train: error: TALLY_SITE_PACKAGES is '{chosen}', which has no {LIBTORCH}")
        return chosen
    if any(os.path.exists(os.path.join(HERE, site, LIBTORCH)) for site in ("..", "libtorch")):
        return None
    found = importlib.util.find_spec("torch")
    if found and found.origin:
        return os.path.dirname(os.path.dirname(found.origin))
    sys.exit("tally-train: error: this Python has no torch 2.11: 'pip install torch==2.11.0', or, for a Python older than 3.10, "
             "call tally-train-libtorch, or set TALLY_SITE_PACKAGES to a folder that holds torch/")


def library_folders(site):
    nvidia = os.path.join(site, "nvidia")
    parts = sorted(os.listdir(nvidia)) if os.path.isdir(nvidia) else []
    folders = [os.path.join(site, "torch/lib"), *(os.path.join(nvidia, part, "lib") for part in parts)]
    return [folder for folder in folders if os.path.isdir(folder)]


def wants_text(words):
    """What the program answers without LibTorch (src/train/commands/early_help.cc)."""
    return words[:1] in ([], ["--version"], ["reference"], ["complete"], ["manual"]) or \
        any(word in ("--help", "-h", "--plan") for word in words)


def main():
    program = os.path.join(HERE, "bin", "tally-train")
    environment, words = os.environ.copy(), sys.argv[1:]
    if wants_text(words):
        program += "-help"
    else:
        site = site_packages()
        if site is not None:
            before = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = ":".join(library_folders(site) + ([before] if before else []))
    os.execve(program, ["tally-train", *words], environment)
