"""The container image that `scripts/package image` made, in a user namespace of somebody who is not root.

  image_test.py BUILD

It is unpacked by umoci and entered by unshare and chroot, since neither needs a daemon; both programs answer there, and the
quickstart trains. Skipped where nobody made an image.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
WITHIN = """
mount -t proc proc /proc
mkdir /tmp/work && cd /tmp/work
tally --version && tally-train --version
tally run /usr/local/share/tally/workflows/quickstart.yaml -q
"""


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def as_user(words, **more):
    """As nobody where this is root."""
    other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    return subprocess.run([*other, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def main():
    image = next(iter(sorted((BUILD / "dist").glob("tally-*.oci.tar"))), None)
    if image is None:
        skip(f"there is no image in {BUILD}/dist: TALLY_DIST={BUILD}/dist scripts/package train-wheel image make it")
    if not shutil.which("umoci"):
        skip("umoci, which unpacks images, is not installed")
    if as_user(["unshare", "-Ur", "true"]).returncode != 0:
        skip("this kernel gives a user no namespace of its own")
    version = image.name.split("-")[1]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        place = pathlib.Path(folder)
        (place / "oci").mkdir()
        subprocess.run(["tar", "-xf", image, "-C", place / "oci"], check=True)
        subprocess.run(["chmod", "-R", "a+rwX", place / "oci"], check=True)
        unpacked = as_user(["umoci", "unpack", "--rootless", "--image", f"{place}/oci:{version}", place / "bundle"])
        assert unpacked.returncode == 0, unpacked.stdout
        ran = as_user(["unshare", "-Ur", "-m", "-p", "--fork", "chroot", place / "bundle/rootfs", "/usr/bin/env", "-i",
                       "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8", "OMP_NUM_THREADS=1",
                       "TALLY_QUIET_CHECK=off", "bash", "-ec", WITHIN])
        assert ran.returncode == 0, ran.stdout
        assert f"tally {version}\n" in ran.stdout and f"tally-train {version}" in ran.stdout, ran.stdout
        rows = [line.split("|") for line in ran.stdout.splitlines() if line.startswith("| ") and "Layers" not in line]
        losses = [(float(row[5]), float(row[6])) for row in rows]
        assert len(losses) == 4 and all(last < first for first, last in losses), ran.stdout
        as_user(["chmod", "-R", "u+rwX", place / "bundle"])
        as_user(["rm", "-rf", place / "bundle"])
    print("ok: the image answers and trains the quickstart in a user namespace")


main()
