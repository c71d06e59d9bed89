"""scripts_test.py SOURCE: what the scripts say of a build directory, with a cache that CMake itself has written, and of
themselves."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))


def check(checkout, build=None):
    """The exit status and the words of check_not_moved in `checkout`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TALLY_")}
    if build:
        environment["TALLY_BUILD"] = build
    done = subprocess.run(["bash", "-c", "source scripts/lib.sh; check_not_moved"], cwd=checkout, env=environment,
                          capture_output=True, text=True)
    return done.returncode, done.stderr


class Moved(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.checkout = os.path.join(self.folder, "it's here")
        shutil.copytree(os.path.join(SOURCE, "scripts"), os.path.join(self.checkout, "scripts"))
        with open(os.path.join(self.checkout, "CMakeLists.txt"), "w") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(nothing NONE)\n")
        self.assertEqual(check(self.checkout), (0, ""))  # nothing was built yet
        subprocess.run(["cmake", "-S", ".", "-B", "build"], cwd=self.checkout, check=True, stdout=subprocess.DEVNULL)

    def test_where_it_was_configured(self):
        self.assertEqual(check(self.checkout), (0, ""))

    def test_by_another_name(self):
        link = os.path.join(self.folder, "link")
        os.symlink(self.checkout, link)
        self.assertEqual(check(link), (0, ""))

    def test_a_moved_checkout(self):
        moved = os.path.join(self.folder, "moved")
        os.rename(self.checkout, moved)
        status, words = check(moved)
        self.assertEqual(status, 1)
        self.assertIn(f"error: {moved}/build was configured as {self.checkout}/build", words)
        self.assertIn(f"remove it (rm -r '{moved}/build')", words)
        shutil.rmtree(os.path.join(moved, "build"))
        self.assertEqual(check(moved), (0, ""))

    def test_a_copied_build_directory(self):
        shutil.copytree(os.path.join(self.checkout, "build"), os.path.join(self.checkout, "other"))
        status, words = check(self.checkout, os.path.join(self.checkout, "other"))
        self.assertEqual(status, 1)
        self.assertIn("other was configured as", words)


class Help(unittest.TestCase):
    def test_each_script_says_what_it_does_and_does_nothing(self):
        for name in ("quickstart", "test", "build", "setup", "lint"):
            with self.subTest(name):
                # Nothing can be set up or built there.
                environment = dict(os.environ, TALLY_DEPS="/dev/null/deps", TALLY_BUILD="/dev/null/build")
                done = subprocess.run([os.path.join(SOURCE, "scripts", name), "--help"], env=environment,
                                      capture_output=True, text=True, timeout=20)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout.split()[0].rstrip(":"), f"scripts/{name}")


class Rootless(unittest.TestCase):
    """scripts/setup on a machine without Debian's packages: no dpkg is found."""

    TOOLS = ("bash dirname sed awk nproc sort head tail grep tr cut mkdir rm touch python3 id cat env realpath").split()

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for tool in self.TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.folder, tool))

    def has(self, name, says):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(f"#!{shutil.which('bash')}\necho '{says}'\n")
        os.chmod(path, 0o755)

    def words(self, **more):
        environment = {"PATH": self.folder, "HOME": self.folder, "TALLY_DEPS": os.path.join(self.folder, "deps"), **more}
        done = subprocess.run([os.path.join(SOURCE, "scripts", "setup"), "--engine-only"], env=environment, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.splitlines()[-1]

    def test_what_must_be_there_is_asked_for_in_a_sentence(self):
        self.assertIn("g++ 11 or newer, and this machine has none: load a module", self.words())
        self.has("g++", "10.2.1")
        self.assertIn("g++ 11 or newer, and this machine has 10.2.1", self.words())
        self.has("g++", "11.4.0")
        self.assertIn("CMake 3.24 or newer, and this machine has none", self.words())
        self.has("cmake", "cmake version 3.22.1")
        self.assertIn("CMake 3.24 or newer, and this machine has 3.22.1", self.words())
        self.has("cmake", "cmake version 3.26.5")
        self.assertIn("a build needs Ninja", self.words())

    def test_a_library_that_is_another_is_refused(self):
        for name, says in (("g++", "14.2.0"), ("cmake", "cmake version 4.1.0"), ("ninja", "1.12")):
            self.has(name, says)
        mirror = os.path.join(self.folder, "mirror")
        words = self.words(TALLY_DEBIAN_MIRROR=f"file://{mirror}")
        self.assertIn("a library could not be fetched", words)
        with open(os.path.join(SOURCE, "scripts", "libraries.txt")) as file:
            first = next(line.split()[2] for line in file if line.startswith("all "))
        os.makedirs(os.path.dirname(os.path.join(mirror, first)))
        with open(os.path.join(mirror, first), "w") as file:
            file.write("another")
        self.assertIn("it has another SHA-256", self.words(TALLY_DEBIAN_MIRROR=f"file://{mirror}"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "deps", ".done-libraries")))


if __name__ == "__main__":
    unittest.main()
