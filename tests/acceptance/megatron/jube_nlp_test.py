#!/usr/bin/env python3
"""workflows/jube/nlp_benchmark.yaml, in JUBE's language, under Tally and under real JUBE with a stub `sbatch`.

  jube_nlp_test.py TALLY SOURCE_DIR

Tables must be the same, byte for byte, and be what the stub's lines give by hand; so must the job scripts. Without
JUBE, Tally alone is held against the hand-made values, and the comparison is skipped (exit code 77).
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()

LINE = (" iteration {:8d}/ 3125000 | consumed samples: {:12d} | elapsed time per iteration (s): {} | learning rate: "
        "4.438E-07 | global batch size: {:5d} | lm loss: 1.010967E+01 | loss scale: 4096.0 | grad norm: 178.553 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 13.276 | TFLOPs: {} |")

# Intervals of 4.0, 2.5 and 2.5 s: mean 3.0 s. TFLOPs 100, 160, 160: mean 140.00.
#   13B:  1024 x 2048 / 3 = 699050.67 tokens/s; 20000000 / 699050.67 = 28.61 s
#   175B:   96 x 2048 / 3 =  65536.00 tokens/s; 20000000 / 65536    = 305.18 s
# Deviation of the seconds: sqrt((1 + 0.25 + 0.25) / 2) = 0.8660254037844386.
INTERVALS = [("4.0000", "100.00"), ("2.5000", "160.00"), ("2.5000", "160.00")]
HEADING = ("Job,Model Size [Billion Param],Nodes,Batch Size,Pipeline Parallel,Tensor Parallel,Iterations,"
           "TFLOPs per GPU,Tokens/sec,Report Time")
EXPECTED = {
    "13": ["nlp-13B-benchmark,13,8,1024,4,2,30,140.00,699050.67,28.61",
           "13,1024,4,2,batch,00:30:00,3.0,0.8660254037844386,3"],
    "175": ["nlp-175B-benchmark,175,96,96,8,8,30,140.00,65536.00,305.18",
            "175,96,8,8,batch,00:30:00,3.0,0.8660254037844386,3"],
}

failures = []


def check(what, found, expected):
    if found != expected:
        failures.append(f"{what}\n  expected: {expected!r}\n  found:    {found!r}")


def write_program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def stubs(folder, outcome):
    """sbatch that takes a job; it has ended at once ("ready", "error") or is only queued ("later")."""
    folder.mkdir()
    write_program(folder / "tally-train", "exit 0\n")
    lines = "\n".join(LINE.format(10 * i, 960 * i, seconds, 96, tflops)
                      for i, (seconds, tflops) in enumerate(INTERVALS, 1))
    (folder / "log").write_text(lines + "\n")
    end = "" if outcome == "later" else f"touch {outcome}\n"
    write_program(folder / "sbatch", f'[ -e "$1" ] || exit 1\necho Submitted batch job 4711\ncp {folder}/log job.out\n{end}')


def run(program, root, arguments, programs):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUBE_")}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    done = subprocess.run([program, *arguments], cwd=root, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def cells(pretty):
    lines = [line for line in pretty.splitlines() if line.startswith("| ")]
    return [",".join(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def run_model(program, base, model, outcome):
    """Runs the file in a copy of its folder; returns the run's folder."""
    root = base / f"{pathlib.Path(program).name}-{model}-{outcome}"
    shutil.copytree(SOURCE / "workflows/jube", root)
    programs = base / f"stubs-{outcome}"
    if not programs.exists():
        stubs(programs, outcome)
    arguments = ["run", "nlp_benchmark.yaml", "-r", "--hide-animation", "--include-path", str(SOURCE / "templates")]
    if model == "13":
        arguments += ["-t", "13"]
    code, out = run(program, root, arguments, programs)
    unfinished = outcome != "ready" and program == TALLY  # JUBE's exit code says nothing of failed or waiting packages
    check(f"{program} run, {model}, {outcome}: exit code", code, 1 if unfinished else 0)
    return root, programs, out


def round_trip(root, programs):
    """The run as an archive, which is verified where nothing else is."""
    code, out = run(TALLY, root, ["archive", "nlp_benchmark_run", "-o", "archive.zip"], programs)
    check("tally archive: exit code", code, 0)
    empty = root / "elsewhere"
    empty.mkdir()
    (root / "archive.zip").rename(empty / "archive.zip")
    done = subprocess.run([TALLY, "verify", "archive.zip"], cwd=empty, env={}, capture_output=True, text=True)
    check("tally verify", (done.returncode, "archive.zip: verified" in done.stdout), (0, True))
    if done.returncode != 0:
        failures.append(done.stdout + done.stderr + out)


def one_program(program, base):
    """What a program made of both models: {what: text}."""
    made = {}
    for model in ("13", "175"):
        root, programs, out = run_model(program, base, model, "ready")
        results = root / "nlp_benchmark_run/000000/result"
        made[f"{model} table"] = (results / "nlp.dat").read_text()
        made[f"{model} csv"] = (results / "nlp_csv.dat").read_text()
        # Again from what is stored. JUBE then has a parameter of update_mode step as its first step saw it, so that
        # the table with the job's name is compared as the run made it.
        code, out = run(program, root, ["result", "nlp_benchmark_run", "-a"], programs)
        check(f"{program} result, {model}: exit code", code, 0)
        check(f"{program} result, {model}", (results / "nlp_csv.dat").read_text(), made[f"{model} csv"])
        if program == TALLY:
            check(f"{program} result, {model}: job", (results / "nlp.dat").read_text(), made[f"{model} table"])
            round_trip(root, programs)
        work = root / "nlp_benchmark_run/000000/000003_benchmark/work"
        made[f"{model} job script"] = (work / "nlp.sbatch").read_text().replace(str(root), "ROOT")
        source = root / "nlp_benchmark_run/000000/000000_get_source/work"
        made[f"{model} first step"] = (source / "stdout").read_text().replace(str(root), "ROOT")
        check(f"{program} {model}: table", cells(made[f"{model} table"]), [HEADING, EXPECTED[model][0]])
        check(f"{program} {model}: csv", made[f"{model} csv"].splitlines()[1:], [EXPECTED[model][1]])
        check(f"{program} {model}: update_mode step", made[f"{model} first step"].split(":")[0],
              f"nlp-{model}B-get_source")
    later(program, base, made)
    root, _, out = run_model(program, base, "13", "error")
    check(f"{program}: error file", (root / "nlp_benchmark_run/000000/000003_benchmark/error").exists(), True)
    check(f"{program}: error row", "|  benchmark |   1 |    0 |    0 |     1 |    0 |" in out, True)
    return made


def later(program, base, made):
    """A job that is still queued when the program ends: `continue` finds its mark."""
    root, programs, out = run_model(program, base, "13", "later")
    check(f"{program}: waits", "|  benchmark |   1 |    0 |    1 |     0 |    0 |" in out, True)
    work = root / "nlp_benchmark_run/000000/000003_benchmark/work"
    os.truncate(work / "stdout", 0)
    (work / "ready").touch()
    code, out = run(program, root, ["continue", "nlp_benchmark_run", "--hide-animation"], programs)
    check(f"{program} continue: exit code", code, 0)
    check(f"{program}: submitted once", (work / "stdout").read_text(), "")
    run(program, root, ["result", "nlp_benchmark_run", "-a"], programs)
    made["13 after continue"] = (root / "nlp_benchmark_run/000000/result/nlp_csv.dat").read_text()
    check(f"{program}: table after continue", made["13 after continue"], made["13 csv"])


def main():
    skipped = shutil.which("jube") is None
    with tempfile.TemporaryDirectory(prefix="tally-jube-nlp-") as temporary:
        base = pathlib.Path(temporary).resolve()
        ours = one_program(TALLY, base)
        if not skipped:
            theirs = one_program(shutil.which("jube"), base)
            for what, text in theirs.items():
                check("JUBE's and ours differ: " + what, ours[what], text)
    print("\n".join(failures) if failures else f"{len(ours)} files as they should be"
          + ("" if skipped else ", the same under JUBE"))
    if failures:
        return 1
    if skipped:
        print("SKIPPED: the comparison with JUBE, because there is no `jube` (apt install jube)")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
