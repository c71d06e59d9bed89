"""bench/report: bench/RESULTS.md is what the committed records give, and a broken record is refused with its sentence."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(TOP, "bench", "report")
GOOD = {
    "date": "2026-11-24", "commit": "c0ffee1", "command": "bench/gpu/run --rounds 2", "source": "bench/gpu/run",
    "machine": {"gpu": "NVIDIA H200", "driver": "580.159.04"},
    "rows": [{"part": "trainer-compile", "name": "GPT-2 124M B64",
              "tally": {"value": 672729, "unit": "tokens/s"},
              "peer": {"name": "torch.compile", "value": 517167, "unit": "tokens/s"}, "ratio": 1.301}]}


def report(folder, *flags):
    return subprocess.run([sys.executable, REPORT, "--records", os.path.join(folder, "records"), *flags],
                          capture_output=True, text=True)


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(os.path.join(self.folder.name, "records"))

    def put(self, record, name="a.json"):
        with open(os.path.join(self.folder.name, "records", name), "w") as file:
            file.write(record if isinstance(record, str) else json.dumps(record))

    def results(self):
        with open(os.path.join(self.folder.name, "RESULTS.md")) as file:
            return file.read()

    def refused(self, record, sentence):
        self.put(record)
        done = report(self.folder.name)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"bench/report: records/a.json: {sentence}\n")

    def test_the_committed_table_is_that_of_the_records(self):
        done = subprocess.run([sys.executable, REPORT, "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_predictions_agree_with_the_rate(self):
        record = copy.deepcopy(GOOD)
        record["rows"][0]["predicted"] = {"plan": 700000, "over_plan": 0.961}
        self.put(record)
        self.assertEqual(report(self.folder.name).returncode, 0)
        record["rows"][0]["predicted"]["over_plan"] = 1.04
        self.refused(record, "rows[0].predicted.over_plan is 1.04, but 672729 / 700000 is 0.961")
        del record["rows"][0]["predicted"]["over_plan"]
        self.refused(record, "rows[0].predicted has one of plan and over_plan without the other")

    def test_a_stale_file_is_named(self):
        self.put(GOOD)
        self.assertEqual(report(self.folder.name).returncode, 0)
        self.assertEqual(report(self.folder.name, "--check").returncode, 0)
        path = os.path.join(self.folder.name, "RESULTS.md")
        for change in (lambda: os.truncate(path, 100), lambda: os.remove(path)):
            change()
            done = report(self.folder.name, "--check")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"bench/report: {path} is stale: it differs from what the records give; "
                                          "run bench/report\n")
        self.assertFalse(os.path.exists(path))

    def test_what_is_absent_is_shown_as_not_recorded(self):
        self.put(GOOD)
        report(self.folder.name)
        self.assertIn("\n| GPT-2 124M B64 | H200 | 672,729 | 517,167 | 1.301 | not recorded | [c0ffee1][1] |\n",
                      self.results())
        self.assertIn("CPU not recorded", self.results())

    def test_a_broken_record_is_refused(self):
        def broken(change):
            record = copy.deepcopy(GOOD)
            change(record, record["rows"][0])
            return record

        for change, sentence in (
                (lambda r, row: r.pop("machine"), "machine is missing"),
                (lambda r, row: r.update(commit="c0ffee1-dirty"), "commit is 'c0ffee1-dirty', not 7 to 40 hex digits"),
                (lambda r, row: r.update(date="24.11.2026"),
                 "date is '24.11.2026', not YYYY-MM-DD or YYYY-MM-DDTHH:MM"),
                (lambda r, row: r.update(rounds=0), "rounds is 0, not a whole number above 0"),
                (lambda r, row: r.update(rows=[]), "rows is not a list of rows"),
                (lambda r, row: r.update(peers=["JUBE"]), "peers is not a JSON object"),
                (lambda r, row: row.pop("name"), "rows[0].name is missing"),
                (lambda r, row: row["tally"].update(value="672,729"), 'rows[0].tally.value is "672,729", not a number'),
                (lambda r, row: row["tally"].update(value=True), "rows[0].tally.value is true, not a number"),
                (lambda r, row: row["tally"].pop("unit"), "rows[0].tally.unit is missing"),
                (lambda r, row: row["tally"].update(low=700000), "rows[0].tally.low is 700000, above the value 672729"),
                (lambda r, row: row["tally"].update(values=[672730, 672731]),
                 "rows[0].tally.value is 672729, outside of rows[0].tally.values"),
                (lambda r, row: row.update(peer={"name": "JUBE", "values": [1, 2]}),
                 "rows[0].peer.value is missing, but rows[0].peer.values is there"),
                (lambda r, row: row["peer"].update(unit="ms"),
                 "rows[0].peer.unit is 'ms', but rows[0].tally.unit is 'tokens/s'"),
                (lambda r, row: row.pop("ratio"), "rows[0].ratio is missing, but tally and peer have values"),
                (lambda r, row: row.update(ratio=1.302), "rows[0].ratio is 1.302, but 672729 / 517167 is 1.301"),
                (lambda r, row: row["peer"].update(value=0), "rows[0].ratio has a divisor of 0"),
                (lambda r, row: row.update(lower_bound={"value": 669552, "unit": "tokens/s"}, lower_bound_ratio=0.9),
                 "rows[0].lower_bound_ratio is 0.9, but 672729 / 669552 is 1.005")):
            with self.subTest(sentence):
                self.refused(broken(change), sentence)
        self.put("{")
        self.assertIn("records/a.json: not valid JSON: ", report(self.folder.name).stderr)
        self.put(broken(lambda r, row: row["tally"].update(vaule=1)))
        self.assertIn("records/a.json: rows[0].tally.vaule is not a known key; known: ", report(self.folder.name).stderr)
        self.put(broken(lambda r, row: row.update(part="trainer")))
        self.assertIn("records/a.json: rows[0].part is 'trainer', not one of ", report(self.folder.name).stderr)

    def test_ratios_of_times_and_of_ranks(self):
        record = copy.deepcopy(GOOD)
        time = {"part": "kernels-attention", "name": "forward", "tally": {"value": 305, "unit": "us"},
                "peer": {"name": "cuDNN", "value": 344, "unit": "us"}, "ratio": 1.13}
        ranks = {"part": "data-parallel", "name": "bf16", "tally": {"value": 1216380, "unit": "tokens/s"}, "ranks": 2,
                 "peer": {"name": "1 rank", "value": 628003, "unit": "tokens/s"}, "ratio": 0.968}
        rounds = {"part": "engine-shell", "name": "1,000", "tally": {"value": 0.89, "low": 0.85, "high": 0.98, "unit": "s"},
                  "peer": {"name": "ninja", "value": 0.75, "low": 0.72, "high": 0.88, "unit": "s"}, "ratio": 1.30,
                  "ratio_of": "rounds"}
        # bench/cpu/run gives each round's value and no bounds.
        values = {"part": "cpu", "name": "2 layers", "ratio": 1.169, "ratio_of": "rounds",
                  "tally": {"value": 21592, "values": [22252, 21592, 21567], "unit": "tokens/s"},
                  "peer": {"name": "PyTorch", "value": 18852, "values": [18852, 18472, 19456], "unit": "tokens/s"}}
        record["rows"] = [time, ranks, rounds, values]
        self.put(record)
        self.assertEqual(report(self.folder.name).stderr, "")
        for row, wrong, sentence in ((time, 0.89, "rows[0].ratio is 0.89, but 344 / 305 is 1.128"),
                                     (ranks, 1.937, "rows[1].ratio is 1.937, but 1216380 / (2 * 628003) is 0.9685"),
                                     (rounds, 1.5, "rows[2].ratio is 1.5, but 0.89 / 0.75 is 1.187"),
                                     (values, 1.3, "rows[3].ratio is 1.3, but 21592 / 18852 is 1.145")):
            right, row["ratio"] = row["ratio"], wrong
            self.refused(record, sentence)
            row["ratio"] = right

    def test_the_newest_row_is_shown(self):
        old, new = copy.deepcopy(GOOD), copy.deepcopy(GOOD)
        old.update(date="2026-11-23", commit="abad1dea")
        self.put(new, "a.json")
        self.put(old, "b.json")
        report(self.folder.name)
        self.assertIn("[c0ffee1][1] |", self.results())
        self.assertNotIn("abad1de", self.results())
        old["date"] = new["date"]
        self.put(old, "b.json")
        self.assertEqual(report(self.folder.name).stderr,
                         "bench/report: records/b.json: the row 'GPT-2 124M B64' of part 'trainer-compile' is in "
                         "records/a.json too, with the same date 2026-11-24; give one of them a time (THH:MM) or delete "
                         "it\n")


if __name__ == "__main__":
    unittest.main()
