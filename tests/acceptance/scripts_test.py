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


if __name__ == "__main__":
    unittest.main()
