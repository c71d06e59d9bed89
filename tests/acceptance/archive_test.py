"""Runs as archives, and archives verified where nothing else is.

  archive_test.py TALLY SOURCE [STATIC]

STATIC: tally as one static file, for the bare machine; without it TALLY itself.
"""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

TALLY, SOURCE = pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2]).absolute()
del sys.argv[1:3]
STATIC = pathlib.Path(sys.argv.pop(1)).absolute() if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else TALLY

SECRET = "hunter2-'quoted'-&-\"more\""
PRINTED = "s3cr3t-that-env-printed"

# A set-up, two points with six repeats each, a file that is no text, a step that works elsewhere.
WORKFLOW = """
name: toy
outpath: runs
parameterset:
  - name: ps
    parameter:
      - {name: n, type: int, _: "1,2"}
      - {name: api_token, mode: env, _: API_TOKEN}
patternset:
  - {name: pv, pattern: [{name: v, type: float, unit: ms, _: "v=$jube_pat_fp"}, {name: twice, mode: python, type: float, _: 2 * $v}]}
  - {name: pw, pattern: {name: w, type: float, _: "w=$jube_pat_fp"}}
step:
  - {name: prepare, kind: setup, do: "echo ready > input.txt; head -c 5000 /dev/zero > data.bin"}
  - name: measure
    kind: run
    depend: prepare
    use: ps
    repeat: 6
    do: 'echo v=$n.$jube_wp_iteration; echo "export HF_TOKEN=$$HF_TOKEN"; echo "the token is $api_token"'
  - {name: elsewhere, depend: measure, work_dir: "$jube_benchmark_home/scratch/$jube_wp_id", do: "echo w=7.$jube_wp_id"}
analyser:
  - {name: a, use: pv, analyse: {step: measure, file: stdout}}
  - {name: b, use: pw, analyse: {step: elsewhere, file: stdout}}
result:
  - use: a
    table: {name: t, style: pretty, column: [n, {_: v, statistic: median, uncertainty: ci, better: lower}, {_: twice, statistic: max}, jube_wp_abspath]}
  - use: b
    table: {name: e, style: csv, column: [n, w]}
"""

# JUBE's language, and a pattern over a file of its own name.
DOUBTFUL = """name: d
outpath: run
parameterset: {name: p, parameter: {name: a, _: [1, 2, 3]}}
patternset: {name: q, pattern: {name: v, type: float, _: 'v=(\\S+)'}}
step: {name: s, kind: run, use: p, do: echo v=$a}
analyser: {name: an, use: q, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: t, column: [a, v]}}
"""

JUBE = """<jube>
 <benchmark name="old" outpath="old_runs">
  <parameterset name="p"><parameter name="x" type="int">1,2,3</parameter></parameterset>
  <patternset name="q"><pattern name="y" type="int">y=$jube_pat_int</pattern></patternset>
  <step name="s"><use>p</use><do>echo y=$$(($x * 2)) | tee out.log</do></step>
  <analyser name="a"><use>q</use><analyse step="s"><file>out.log</file></analyse></analyser>
  <result><use>a</use><table name="r" style="csv"><column>x</column><column>y</column></table></result>
 </benchmark>
</jube>
"""


class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        (cls.home / "toy.yaml").write_text(WORKFLOW)
        (cls.home / "old.xml").write_text(JUBE)
        cls.environment = {"PATH": os.environ["PATH"], "HOME": str(cls.home), "API_TOKEN": SECRET, "HF_TOKEN": PRINTED, "TALLY_QUIET_CHECK": "off"}
        cls.tally("run", "toy.yaml", "-j", "2")
        cls.tally("run", "old.xml", "-r")
        # Another shell, which knows nothing of the token that was printed.
        cls.later = {name: value for name, value in cls.environment.items() if name != "HF_TOKEN"}
        cls.tally("archive", "toy.yaml", "-o", "toy.zip", environment=cls.later)
        cls.bytes = (cls.home / "toy.zip").read_bytes()

    @classmethod
    def call(cls, *words, environment=None, cwd=None, program=TALLY):
        return subprocess.run([str(program), *map(str, words)], env=environment or cls.environment, cwd=cwd or cls.home,
                              capture_output=True, text=True, timeout=300, errors="replace")

    @classmethod
    def tally(cls, *words, environment=None):
        done = cls.call(*words, environment=environment)
        if done.returncode != 0:
            raise AssertionError(f"tally {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def bare(self, file, *words):
        """Verifies a file alone, in an empty folder, without an environment, with one program. Where that is static and
        this is root, the folder is all that there is."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(file, f"{folder}/it.zip")
            if os.geteuid() == 0 and b"ld-linux" not in STATIC.read_bytes()[:4096]:
                os.mkdir(f"{folder}/tmp")
                shutil.copy(STATIC, f"{folder}/tally")
                return subprocess.run(["/tally", "verify", "it.zip", *words], env={}, capture_output=True, text=True, timeout=300,
                                      preexec_fn=lambda: (os.chroot(folder), os.chdir("/")))
            return self.call("verify", "it.zip", *words, environment={"NOTHING": "1"}, cwd=folder, program=STATIC)

    def verify_bytes(self, data):
        path = self.home / "changed.zip"
        path.write_bytes(data)
        return self.call("verify", path)

    def test_round_trip_on_a_bare_machine(self):
        done = self.bare(self.home / "toy.zip")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"toy, run 0: 2 tables made again from \d+ samples")
        self.assertIn("it.zip: verified", done.stdout)

    def test_without_the_folder_of_the_run(self):
        away = self.home / "away"
        (self.home / "runs").rename(away)
        (self.home / "scratch").rename(self.home / "scratch-away")
        try:
            done = self.bare(self.home / "toy.zip")
        finally:
            away.rename(self.home / "runs")
            (self.home / "scratch-away").rename(self.home / "scratch")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def doubtful(self, name):
        """A run of three points in a folder of its own."""
        home = self.home / name
        home.mkdir()
        (home / "d.yaml").write_text(DOUBTFUL)
        self.assertEqual(self.call("run", "d.yaml", cwd=home).returncode, 0)
        return home

    def test_what_result_says_of_a_run_archive_says_too(self):
        # Output that changed: the row is marked, in the archive too, and it is verified elsewhere.
        home = self.doubtful("changed")
        with open(home / "run/000000/000001_s/work/stdout", "a") as file:
            file.write("v=9\n")
        done = self.call("archive", "run", "-o", "it.zip", cwd=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has changed since it ended", done.stderr)
        done = self.bare(home / "it.zip")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with zipfile.ZipFile(home / "it.zip") as archive:
            self.assertIn("2,2.0,CHANGED", archive.read("runs/000000/tables/t.dat").decode())
            self.assertIn(f"'{home}/run/000000/000001_s/work/stdout'", archive.read("runs/000000/tables/tables.json").decode())
        # Output that is gone: an error, as of `result`. The archive is written all the same.
        home = self.doubtful("gone")
        shutil.rmtree(home / "run/000000/000001_s")
        done = self.call("archive", "run", "-o", "it.zip", cwd=home)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is done, but its work directory is gone", done.stderr)
        self.assertEqual(self.bare(home / "it.zip").returncode, 0)
        # A run that has not ended.
        (home / "d.yaml").write_text(DOUBTFUL.replace("outpath: run", "outpath: half").replace("echo", "test $a = 2 && kill -9 $PPID; echo"))
        self.call("run", "d.yaml", cwd=home)
        done = self.call("archive", "half", "-o", "it.zip", cwd=home)
        self.assertIn("workpackages have not ended", done.stderr)

    def test_a_link_stays_one_and_a_device_is_written_to(self):
        (self.home / "link.zip").symlink_to("real.zip")
        self.tally("archive", "old.xml", "-o", "link.zip")
        self.assertTrue((self.home / "link.zip").is_symlink())
        self.assertEqual(self.call("verify", "real.zip").returncode, 0)
        (self.home / "full.zip").symlink_to("/dev/full")
        done = self.call("archive", "old.xml", "-o", "full.zip")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertTrue((self.home / "full.zip").is_char_device())

    def test_jubes_files_and_several_runs(self):
        self.tally("archive", "toy.yaml", "old.xml", "-o", "two.zip")
        done = self.bare(self.home / "two.zip")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("old, run 0: 1 table made again", done.stdout)
        self.assertIn("toy, run 0: 2 tables made again", done.stdout)

    def test_tables_are_those_of_the_run(self):
        with zipfile.ZipFile(self.home / "toy.zip") as archive:
            for name in ("t", "e"):
                self.assertEqual(archive.read(f"runs/000000/tables/{name}.dat"), (self.home / f"runs/000000/result/{name}.dat").read_bytes())
            self.assertIn("runs/000000/000001_measure/work/stdout", archive.namelist())
            evidence = json.loads(archive.read("evidence.json"))
        run = evidence["runs"][0]
        data = {one["path"]: one for one in run["data"]}
        self.assertEqual(data["000000_prepare/work/data.bin"]["sha256"], hashlib.sha256(bytes(5000)).hexdigest())
        self.assertIn("CPU", run["machines"][0])
        self.assertEqual({one["path"]: one["sha256"] for one in run["programs"]}["tally"], hashlib.sha256(TALLY.read_bytes()).hexdigest())

    def test_other_programs_read_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(self.home / "toy.zip") as archive:
                self.assertIsNone(archive.testzip())
                archive.extractall(folder)
            done = subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if shutil.which("unzip"):
            done = subprocess.run(["unzip", "-tq", self.home / "toy.zip"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_reproducible(self):
        self.tally("archive", "toy.yaml", "-o", "again.zip", environment=self.later)
        self.assertEqual((self.home / "again.zip").read_bytes(), self.bytes)
        # Another place, another time, and `result` in between.
        self.tally("result", "toy.yaml")
        other = self.home / "other"
        other.mkdir()
        done = self.call("archive", self.home / "runs", "-o", "x.zip", cwd=other, environment=self.later)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((other / "x.zip").read_bytes(), self.bytes)

    def test_no_secret(self):
        told = self.tally("archive", "toy.yaml", "-o", "told.zip", environment=self.later)
        self.assertRegex(told.stderr, r"API_TOKEN is left out, in \d+ places")
        self.assertRegex(told.stderr, r"HF_TOKEN is left out, in \d+ places")
        for data in (self.bytes, (self.home / "told.zip").read_bytes()):
            for secret in (PRINTED, SECRET, "hunter2", SECRET.replace("'", "'\\''"), SECRET.replace("&", "&amp;")):
                self.assertNotIn(secret.encode(), data)
        with zipfile.ZipFile(self.home / "toy.zip") as archive:
            listed = json.loads(archive.read("evidence.json"))["secrets_left_out"]
        self.assertIn(("runs/000000/000001_measure/work/stdout", "HF_TOKEN"), {(one["member"], one["name"]) for one in listed})
        self.assertTrue(any(one["member"].endswith("journal.sqlite") and one["name"] in ("API_TOKEN", "api_token") for one in listed), listed)
        # They are there, or the test means nothing.
        self.assertIn(PRINTED, (self.home / "runs/000000/000001_measure/work/stdout").read_text())

    def member_at(self, place):
        with zipfile.ZipFile(self.home / "toy.zip") as archive:
            for one in archive.infolist():
                begin = one.header_offset + 30 + len(one.filename.encode())
                if begin <= place < begin + one.file_size:
                    return one.filename
        return None

    def test_each_changed_byte_is_found_and_named(self):
        draw = random.Random(57)
        inside = 0
        for _ in range(200):
            place, data = draw.randrange(len(self.bytes)), bytearray(self.bytes)
            data[place] ^= draw.randrange(1, 256)
            done = self.verify_bytes(data)
            self.assertIn(done.returncode, (1, 2), f"byte {place}: {done.stdout}{done.stderr}")
            self.assertNotIn(": verified", done.stdout)
            member = self.member_at(place)
            if member:
                inside += 1
                self.assertIn(f"{member}: its content has changed", done.stderr, f"byte {place}")
                self.assertEqual(done.returncode, 1)
            else:
                self.assertRegex(done.stderr, r"header|directory|end of the file|no member can|no archive", f"byte {place}")
        self.assertGreater(inside, 150)

    def test_each_byte_of_the_directory(self):
        begin = max(one.header_offset + 30 + len(one.filename.encode()) + one.file_size for one in zipfile.ZipFile(self.home / "toy.zip").infolist())
        places = list(range(begin, len(self.bytes)))
        places = places[:90] + places[-40:]
        for place in places:
            data = bytearray(self.bytes)
            data[place] ^= 255
            self.assertEqual(self.verify_bytes(data).returncode, 1, f"byte {place} of the directory")

    def test_more_and_fewer_bytes(self):
        for data in (self.bytes + b"x", b"x" + self.bytes, self.bytes[:-1], self.bytes[:1000], b"", b"PK\3\4", self.bytes * 2):
            done = self.verify_bytes(data)
            self.assertIn(done.returncode, (1, 2), done.stdout)
        self.assertEqual(self.call("verify", "toy.yaml").returncode, 2)
        self.assertEqual(self.call("verify", "not-there.zip").returncode, 2)

    def rewritten(self, changes):
        """The archive with members replaced by somebody who knows how it is made."""
        with zipfile.ZipFile(self.home / "toy.zip") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for name, change in changes.items():
            members[name] = change(members.get(name))
        members = {name: data for name, data in members.items() if data is not None}
        members.pop("SHA256SUMS")
        members["SHA256SUMS"] = "".join(f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members)).encode()
        path = self.home / "forged.zip"
        with zipfile.ZipFile(path, "w") as out:
            for name in sorted(members):
                info = zipfile.ZipInfo(name)
                info.create_system, info.create_version, info.external_attr = 3, 45, 0o100644 << 16
                out.writestr(info, members[name])
        # zipfile sets the flag of UTF-8 only where a name needs it, tally always.
        data = bytearray(path.read_bytes())
        for signature, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
            for found in re.finditer(signature, bytes(data)):
                data[found.start() + offset:found.start() + offset + 2] = b"\x00\x08"
        path.write_bytes(data)
        return path

    def test_a_forged_sample_does_not_give_the_table(self):
        done = self.bare(self.rewritten({}))
        self.assertEqual(done.returncode, 0, done.stderr)
        forged = self.rewritten({"runs/000000/000001_measure/work/stdout": lambda data: data.replace(b"v=1.0", b"v=0.5")})
        done = self.bare(forged)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("does not follow from the run's samples", done.stderr)
        done = self.bare(self.rewritten({"runs/000000/tables/t.dat": lambda data: data.replace(b"1.", b"0.", 1)}))
        self.assertRegex(done.stderr, r"runs/000000/tables/t.dat: does not follow from the run's samples: line \d+ is")
        done = self.bare(self.rewritten({"runs/000000/tables/more.dat": lambda _: b"9 9 9\n"}))
        self.assertIn("tables/more.dat: does not follow", done.stderr)
        done = self.bare(self.rewritten({"runs/000000/samples.csv": lambda _: None}))
        self.assertIn("samples.csv: is missing", done.stderr)

    def test_a_witness_follows_from_its_record(self):
        losses = {"loss": [10.5, 10.25, 10.0]}
        right = {"losses": [10.5, 10.0], "own_losses": [10.5, 10.25], "largest_relative_difference": 0.025}
        cases = {"right": (right, None),
                 "others": ({**right, "own_losses": [10.5, 10.0]}, "its witness has other losses than its steps"),
                 "nicer": ({**right, "largest_relative_difference": 0.0025},
                           "the difference of its witness does not follow from its losses")}
        for name, (witness, fault) in cases.items():
            with self.subTest(name):
                (self.home / "record.json").write_text(json.dumps({"results": {"witness": witness}, "steps": losses}))
                (self.home / f"{name}.yaml").write_text(
                    f"name: {name}\noutpath: {name}\nfileset: {{name: f, copy: record.json}}\n"
                    "step: {name: train, kind: run, use: f, do: echo done}\n")
                self.tally("run", f"{name}.yaml")
                self.tally("archive", f"{name}.yaml", "-o", f"{name}.zip")
                done = self.bare(self.home / f"{name}.zip")
                member = "runs/000000/000000_train/work/record.json"
                if fault:
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertIn(f"{member}: {fault}", done.stdout + done.stderr)
                else:
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn(f"{member}: the losses of the first 2 steps differ by 0.025 of the reference model's in float64",
                                  done.stdout)

    def test_members_stay_in_their_folder(self):
        for name in ("../out", "/tmp/out", "a/../../out", "runs//x"):
            path = self.home / "bad.zip"
            with zipfile.ZipFile(path, "w") as out:
                out.writestr(zipfile.ZipInfo(name), b"x")
            done = self.call("verify", path)
            self.assertIn(done.returncode, (1, 2), name)
        self.assertFalse((self.home.parent / "out").exists())

    def test_replay_beside_rows_that_failed_and_of_a_run_that_has_not_ended(self):
        home = self.doubtful("failed")
        (home / "d.yaml").write_text(DOUBTFUL.replace("do: echo v=$a", "do: echo v=$a; test $a != 2"))
        self.assertEqual(self.call("run", "d.yaml", cwd=home).returncode, 1)
        self.call("archive", "run", "-i", "1", "-o", "it.zip", cwd=home)
        done = self.call("verify", "it.zip", "--replay", "--share", "100%", cwd=home)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 2 points run again: 2 of 2 values agree", done.stdout)
        # Nothing of what is left of an unfinished run is run.
        (home / "d.yaml").write_text(DOUBTFUL.replace("do: echo v=$a", "do: echo v=$a; test $a != 2 || test -e $jube_benchmark_home/left || kill -9 $PPID").replace("outpath: run", "outpath: half"))
        self.call("run", "d.yaml", cwd=home)
        (home / "left").touch()
        self.call("archive", "half", "-o", "half.zip", cwd=home)
        done = self.call("verify", "half.zip", "--replay", "--share", "100%", cwd=home)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("not run again: the run had not ended", done.stderr)

    def test_signature(self):
        if not shutil.which("ssh-keygen"):
            self.skipTest("no ssh-keygen")
        for key in ("one", "two"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.home / key, "-C", f"{key}@site"], check=True)
        (self.home / "signers").write_text("ann@site " + (self.home / "one.pub").read_text())
        (self.home / "other-keys").write_text("bob@site " + (self.home / "two.pub").read_text())
        self.tally("archive", "toy.yaml", "-o", "signed.zip", "--sign", "one")
        done = self.tally("verify", "signed.zip", "--signers", "signers")
        self.assertIn("ann@site", done.stdout)
        self.assertIn("SHA256:", self.tally("verify", "signed.zip").stdout)
        done = self.call("verify", "signed.zip", "--signers", "other-keys")
        self.assertEqual(done.returncode, 1)
        self.assertIn("NOT verified", done.stdout)
        self.tally("archive", "old.xml", "-o", "other.zip")
        done = self.call("verify", "other.zip", "--signature", "signed.zip.sig")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the signature does not hold", done.stderr)
        self.assertEqual(self.call("verify", "toy.zip", "--signers", "signers").returncode, 1, "unsigned, and signers asked for")
        self.assertIn("not signed", self.tally("verify", "toy.zip").stdout)

    def test_replay(self):
        # Values of the same repeats, and a value that another day changes.
        (self.home / "replay.yaml").write_text(WORKFLOW.split("  - {name: elsewhere")[0].replace("name: toy", "name: again").replace(
            "outpath: runs", "outpath: again_runs").replace("echo v=$n.", "echo v=$$(cat $jube_benchmark_home/factor)$n.") + """
analyser: {name: a, use: pv, analyse: {step: measure, file: stdout}}
result: {use: a, table: {name: t, column: [n, {_: v, statistic: median, better: lower}]}}
""")
        (self.home / "factor").write_text("1")
        self.tally("run", "replay.yaml")
        self.tally("archive", "replay.yaml", "-o", "replay.zip")
        before = sorted(str(path) for path in (self.home / "again_runs").rglob("*"))
        done = self.tally("verify", "replay.zip", "--replay")
        self.assertIn("1 of 2 points run again: 1 of 1 values agree", done.stdout)
        done = self.tally("verify", "replay.zip", "--replay", "--share", "100%")
        self.assertIn("2 of 2 points run again: 2 of 2 values agree", done.stdout)
        self.assertRegex(done.stdout, r"6 and 6 values")
        (self.home / "factor").write_text("2")
        done = self.call("verify", "replay.zip", "--replay", "--share", "100%")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("does not agree", done.stdout)
        self.assertEqual(before, sorted(str(path) for path in (self.home / "again_runs").rglob("*")))
        self.assertEqual(self.call("--no-exec", "verify", "replay.zip", "--replay").returncode, 2)
        # A step outside of the run would write over the first run's files.
        done = self.call("verify", "toy.zip", "--replay")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has a work_dir outside of the run", done.stderr)


if __name__ == "__main__":
    unittest.main()
