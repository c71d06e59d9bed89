"""What the tests against Python programs share: skipping, checking, running our tool."""
import json
import subprocess
import sys


def skip(why):
    print("SKIPPED: " + why + " (scripts/setup --tests provides it)")
    sys.exit(77)


def check(condition, what):
    if not condition:
        sys.exit("FAILED " + what)


def run_tool(tool, *arguments, code=0, **how):
    """The JSON lines that the tool prints; where another exit code is expected, its messages."""
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=120, **how)
    check(done.returncode == code, f"{arguments[:4]}: exit code {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.split("\n") if line] if code == 0 else done.stderr
