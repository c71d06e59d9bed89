#!/usr/bin/env python3
"""Files that say `init_with: platform.xml` run with nothing but Tally's templates.

  platform_test.py TALLY SOURCE_DIR

A file in JUBE's language takes all sets of the shipped platform.xml; stub sbatch and srun run its job scripts at once.
The names of sets and parameters are held against those of JUBE's own Slurm platform file, and the whole run against
JUBE's with our templates, where JUBE is installed (else that part is skipped: exit code 77).
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
JUBE_PLATFORM = pathlib.Path("/usr/share/doc/jube/platform/slurm/platform.xml")

BENCH = """
name: bench
outpath: run
parameterset:
  - name: systemParameter
    init_with: platform.xml
    parameter:
      - {name: nodes, _: "1,2"}
      - {name: account, tag: paid, _: money}
      - {name: executable, _: ./program.sh}
      - {name: args_exec, _: "$nodes"}
      - {name: preprocess, _: "echo before"}
      - {name: postprocess, _: "echo after"}
  - {name: executeset, init_with: platform.xml}
substituteset: {name: executesub, init_with: platform.xml}
fileset:
  - {name: jobfiles, init_with: platform.xml}
  - {name: own, copy: program.sh}
patternset: {name: pattern, pattern: {name: value, type: int, _: "value=$jube_pat_int"}}
step:
  name: submit
  use: [systemParameter, executeset, jobfiles, own, executesub]
  do: {done_file: $done_file, error_file: $error_file, _: $submit $submit_script}
analyser: {name: analyse, use: pattern, analyse: {step: submit, file: $outlogfile}}
result: {use: analyse, table: {name: result, style: csv, sort: nodes, column: [nodes, tasks, queue, gres, value]}}
"""
CHAIN = """
name: chain
outpath: run
parameterset:
  - {name: executeset, init_with: platform.xml}
  - {name: numbers, parameter: {name: n, _: "1,2"}}
fileset: {name: chainfiles, init_with: platform.xml}
step:
  name: links
  shared: $shared_folder
  use: [executeset, numbers, chainfiles]
  do: $chainjob_script $shared_job_info link.job
"""


def write_program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def make_stubs(folder):
    folder.mkdir()
    write_program(folder / "sbatch", 'sh "$1" >job.out 2>job.err\necho Submitted batch job 1\n')
    write_program(folder / "srun", 'exec "$@"\n')


def run(program, root, stubs, arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUBE_")}
    environment["PATH"] = f"{stubs}:{environment['PATH']}"
    done = subprocess.run([program, *arguments], cwd=root, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def bench(program, base, program_text, *more):
    """Runs BENCH; returns exit code, output, and the run's folder."""
    root = pathlib.Path(tempfile.mkdtemp(dir=base))
    (root / "bench.yaml").write_text(BENCH)
    write_program(root / "program.sh", program_text)
    code, out = run(program, root, base / "stubs", ["run", "bench.yaml", "-r", "--hide-animation", *more])
    return code, out, root / "run/000000"


def names_of(path):
    found = set()
    for top in ElementTree.parse(path).getroot():
        found.add((top.tag, top.get("name")))
        for child in top:
            found.add((top.get("name"), child.tag, child.get("name") or child.get("source") or child.text or child.get("in")))
    return found


def expect(what, condition, detail=""):
    if not condition:
        sys.exit(f"FAILED: {what}\n{detail}")


def main():
    with tempfile.TemporaryDirectory(prefix="tally-platform-") as temporary:
        base = pathlib.Path(temporary).resolve()
        make_stubs(base / "stubs")
        code, out, ours = bench(TALLY, base, "echo value=$1\n")
        expect("the run", code == 0, out)
        expect("no warning", "warning" not in out, out)
        table = (ours / "result/result.dat").read_text()
        expect("the table", table == "nodes,tasks,queue,gres,value\n1,1,batch,NONE,1\n2,2,batch,NONE,2\n", table)
        log = (ours / "000001_submit/work/job.out").read_text()
        expect("the parts of the job", log == "before\nvalue=2\nafter\n", log)
        script = (ours / "000001_submit/work/submit.job").read_text()
        for line in ('#SBATCH --job-name="bench_submit_1"', "#SBATCH --nodes=2", "#SBATCH --ntasks=2",
                     "#SBATCH --time=00:30:00", 'export OMP_NUM_THREADS="1"', "touch ready"):
            expect(f"'{line}' in the job script", line in script.replace("  ", ""), script)
        expect("no account without one", "--account" not in script, script)
        _, _, paid = bench(TALLY, base, "true\n", "-t", "paid")
        expect("the account", "#SBATCH --account=money\n" in (paid / "000000_submit/work/submit.job").read_text())

        code, out, failed = bench(TALLY, base, "exit 3\n")
        expect("a program that fails", code == 1 and (failed / "000000_submit/error").exists(), out)
        expect("nothing runs after it", (failed / "000000_submit/work/job.out").read_text() == "before\n")

        chain = base / "chain"
        chain.mkdir()
        (chain / "chain.yaml").write_text(CHAIN)
        write_program(base / "stubs/sbatch", 'echo "$@" >> ' + str(base / "submitted") + "\necho Submitted batch job 7\n")
        code, out = run(TALLY, chain, base / "stubs", ["run", "chain.yaml"])
        expect("the chain", code == 0, out)
        submitted = (base / "submitted").read_text()
        expect("the second waits for the first", submitted == "link.job\n--dependency=afterany:7 link.job\n", submitted)

        if shutil.which("jube") is None or not JUBE_PLATFORM.exists():
            print("SKIPPED: the comparison with JUBE, because there is no `jube` (apt install jube)")
            return 77
        missing = names_of(JUBE_PLATFORM) - names_of(SOURCE / "templates/platform.xml")
        expect("every name of JUBE's Slurm platform", not missing, str(sorted(missing, key=str)))
        shutil.rmtree(base / "stubs")
        make_stubs(base / "stubs")
        code, out, theirs = bench("jube", base, "echo value=$1\n", "--include-path", str(SOURCE / "templates"))
        expect("JUBE's run with our templates", code == 0 and (theirs / "result/result.dat").exists(), out)
        for file in ("result/result.dat", "000000_submit/work/submit.job", "000001_submit/work/submit.job",
                     "000001_submit/work/job.out"):
            expect(f"JUBE's and our {file}", (theirs / file).read_text() == (ours / file).read_text(),
                   (theirs / file).read_text() + "----\n" + (ours / file).read_text())
    print("as expected, and the same under JUBE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
