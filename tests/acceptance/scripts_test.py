"""scripts_test.py SOURCE: what scripts/lib.sh says of a build directory, with a cache that CMake itself has written."""
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


if __name__ == "__main__":
    unittest.main()
