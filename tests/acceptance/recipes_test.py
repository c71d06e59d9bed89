"""The recipes in packaging/, as far as they can be tried here.

Spack's is read with stand-ins for Spack's directives: what it passes to CMake are options that CMakeLists.txt has.
EasyBuild installs its recipes of the static archive and of tally-train's wheel, and Lmod loads the modules that EasyBuild
makes and the one that we ship. Without EasyBuild or Lmod these tests are skipped, and say so.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

SOURCE, BUILD, PYTHON = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
del sys.argv[1:4]
VERSION = re.search(r"^project\(tally VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
LMOD = pathlib.Path("/usr/share/lmod/lmod")


class Spack(unittest.TestCase):
    class Package:
        """What a recipe inherits: records directives, and answers as a spec with everything."""
        def define(self, name, value):
            self.defined[name] = value
            return f"-D{name}={value}"

        def define_from_variant(self, name, variant):
            assert variant in self.variants
            return self.define(name, True)

    def test_recipe(self):
        recorded = {"version": [], "depends_on": [], "variant": []}

        class Anything:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return False

            def __call__(self, *arguments, **_):
                return arguments[0] if arguments and callable(arguments[0]) else self

            def __getattr__(self, _):
                return self

            def __getitem__(self, _):
                return self

        module = types.ModuleType("spack.package")
        anything = Anything()
        for name in ("license", "conflicts", "generator", "when", "run_after", "on_package_attributes", "Executable"):
            setattr(module, name, anything)
        for name in recorded:
            setattr(module, name, lambda *words, name=name, **_: recorded[name].append(words[0]))
        module.CMakePackage = self.Package
        module.CudaPackage = type("CudaPackage", (), {})
        sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
        code = (SOURCE / "packaging/spack/packages/tally/package.py").read_text()
        space = {}
        exec(compile(code, "package.py", "exec"), space)
        package = space["Tally"]()
        package.defined, package.variants, package.spec = {}, recorded["variant"], anything
        package.cmake_args()
        options = set(re.findall(r"(?:option\(|set\()(TALLY_\w+)", (SOURCE / "CMakeLists.txt").read_text()))
        options.add("TALLY_SITE_PACKAGES")  # cmake/LibTorch.cmake
        self.assertLessEqual(set(package.defined), options)
        self.assertIn("TALLY_SITE_PACKAGES", package.defined)
        self.assertEqual(recorded["version"], [VERSION])
        # Every library that the engine looks for is a dependency.
        wanted = re.findall(r"find_package\((\S+) REQUIRED", (SOURCE / "engine/CMakeLists.txt").read_text())
        named = " ".join(recorded["depends_on"]).replace("-", "").replace("_", "").lower()
        for library in set(wanted) - {"PkgConfig", "Threads"}:
            plain = re.sub(r"[-_]|3$", "", library).lower()
            self.assertIn(plain, named)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)

    def shell(self, text, **environment):
        base = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin", "HOME": str(self.here), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["bash", "-ec", text], cwd=self.here, env=dict(base, **environment), capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")
        return done.stdout


@unittest.skipUnless(LMOD.is_dir(), "there is no Lmod")
class Lmod(InFolder):
    def test_our_module(self):
        prefix = self.here / "opt/tally"
        subprocess.run(["cmake", "--install", BUILD, "--component", "tally", "--prefix", prefix], check=True,
                       capture_output=True)
        modules = prefix / "share/modulefiles"
        shutil.copytree(SOURCE / "packaging/modules", modules)
        shown = self.shell(f"source {LMOD}/init/bash; module use {modules}; module load tally/{VERSION}\n"
                           "command -v tally; tally --version; man -w tally; module unload tally; ! command -v tally")
        self.assertEqual(shown.split("\n")[:3], [f"{prefix}/bin/tally", f"tally {VERSION}",
                                                 f"{prefix}/share/man/man1/tally.1"])


@unittest.skipUnless((PYTHON.parent / "eb").exists() and LMOD.is_dir(), "there is no EasyBuild, or no Lmod")
class EasyBuild(InFolder):
    def environment(self):
        return {"EASYBUILD_PREFIX": str(self.here / "eb"), "EASYBUILD_MODULES_TOOL": "Lmod",
                "LMOD_CMD": str(LMOD / "libexec/lmod"), "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1"}

    def test_the_static_archive(self):
        if not list((BUILD / "dist").glob("*.tar.gz")):
            self.skipTest("there is no archive; scripts/package makes it")
        recipe = SOURCE / f"packaging/easybuild/tally-{VERSION}.eb"
        self.shell(f"eb {recipe} --sourcepath {BUILD}/dist --dry-run", **self.environment())
        self.shell(f"eb {recipe} --sourcepath {BUILD}/dist", **self.environment())
        shown = self.shell(f"source {LMOD}/init/bash; module use {self.here}/eb/modules/all; module load tally/{VERSION}\n"
                           "tally --version")
        self.assertEqual(shown, f"tally {VERSION}\n")

    def test_the_trainer_s_wheel(self):
        wheel = next((BUILD / "dist").glob(f"tally_train-{VERSION}+cpu-*_{platform.machine()}.whl"), None)
        site = next(PYTHON.parent.parent.glob("lib/python3*/site-packages/torch/lib/libtorch_cpu.so"), None)
        if wheel is None or site is None:
            self.skipTest("there is no wheel of tally-train, or no PyTorch; scripts/package train-wheel makes the one")
        recipe = SOURCE / f"packaging/easybuild/tally-train-{VERSION}-cpu.eb"
        # Not fetched: the libraries that are here, under the names of PyPI's files.
        sources = self.here / "sources"
        sources.mkdir()
        (sources / wheel.name).symlink_to(wheel)
        for name in re.findall(rf"'((?:torch|nvidia)\S+_{platform.machine()}\.whl)'", recipe.read_text()):
            self.pack(sources / name, site.parents[2])
        command = f"eb {recipe} --sourcepath {sources} --ignore-checksums"
        self.shell(command, **self.environment())
        shown = self.shell(f"source {LMOD}/init/bash; module use {self.here}/eb/modules/all\n"
                           f"module load tally-train/{VERSION}-cpu; tally-train --version; man -w tally-train\n"
                           "tally-train --mock-data --tokenizer-type bytes --num-layers 1 --hidden-size 16 --seq-length 8 "
                           "--num-attention-heads 2 --micro-batch-size 1 --train-iters 2 --log-interval 1 --device cpu",
                           PATH="/usr/bin:/bin")
        self.assertTrue(shown.startswith(f"tally-train {VERSION}"), shown)
        self.assertEqual(len(re.findall(r"lm loss: ", shown)), 2, shown)

    @staticmethod
    def pack(path, site):
        """What tally-train takes of a wheel of PyTorch's or NVIDIA's."""
        kind = re.match(r"torch|nvidia_cuda_(runtime|cupti)", path.name)[0]
        pattern = {"torch": "torch/lib/lib[tcg]*", "nvidia_cuda_runtime": "nvidia/cu13/lib/libcudart*",
                   "nvidia_cuda_cupti": "nvidia/cu13/lib/libcupti*"}[kind]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
            for file in sorted(site.glob(pattern)):
                if not file.name.startswith(("libtorch_cuda", "libtorch_python")):
                    packed.write(file, file.relative_to(site).as_posix())

    def test_the_trainer_s_recipe_is_read(self):
        recipe = SOURCE / f"packaging/easybuild/tally-train-{VERSION}-gompi-2025b.eb"
        options = set(re.findall(r"-D(TALLY_\w+)=", recipe.read_text()))
        known = set(re.findall(r"(?:option\(|set\()(TALLY_\w+)", (SOURCE / "CMakeLists.txt").read_text()))
        self.assertLessEqual(options, known | {"TALLY_SITE_PACKAGES"})


if __name__ == "__main__":
    unittest.main()
