#!/usr/bin/env python3
"""Eight GPUs of a node, one of which has a wrong bit in one gradient of one step: `tally fleet` with the shipped
workflow says that the node is wrong and names the GPU. The GPUs are processes on CPUs.
    flipped_bit_test.py TALLY TALLY_TRAIN FLIPPED_BIT"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WORKFLOW = pathlib.Path(__file__).resolve().parents[3] / "workflows/fleet.yaml"
# A GPU's program by its number.
PROGRAM = """#!/bin/sh
if [ "$CUDA_VISIBLE_DEVICES" = "$FLIPPED_GPU" ]; then exec {flipped} "$@"; fi
exec {right} "$@"
"""


def fleet(tally, program, gpus, flipped):
    """The fleet's report, with the bit of GPU number `flipped` in the sixth step."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TALLY_QUIET_CHECK="off", FLIPPED_GPU=str(flipped), FLIP_STEP="6", NO_COLOR="1")
        # The budget ends it after the first round.
        ran = subprocess.run(
            [tally, "fleet", WORKFLOW, "--local", "--nodes", "0", "--tag", "small", "--set", f"gpus={gpus}",
             "--set", "steps=12", "--set", f"trainer={program}", "--budget", "0.000001", "-o", f"{folder}/run"],
            env=environment, capture_output=True, text=True, timeout=600)
        print(ran.stdout + ran.stderr)
        report = json.loads(pathlib.Path(folder, "run/000000/result/fleet.json").read_text())
        return ran.returncode, report["machines"][0]


def main():
    tally, right, flipped = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        program.write_text(PROGRAM.format(right=right, flipped=flipped))
        program.chmod(0o755)
        code, node = fleet(tally, program, 8, 5)
        assert code == 5, code
        assert node["verdict"] == "wrong", node
        assert node["part"] == "5", node
        # The loss of the last step may hide it. The weights do not.
        assert node["why"].startswith("gpu 5: weights is ") and ", on the others " in node["why"], node
        code, node = fleet(tally, program, 8, "none")
        assert node["verdict"] != "wrong", node


if __name__ == "__main__":
    main()
