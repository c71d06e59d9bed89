"""The workflow of tests/slurm/place.py for a step with a platform of its own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "slurm"))
import place  # noqa: E402


def workflow(resources):
    """A text for Place.write(), whose `keys` name the platform."""
    text = place.WORKFLOW
    begin, end = text.index("      - {{from: slurm"), text.index("    resources:")
    escaped = resources.replace("{", "{{").replace("}", "}}")
    return text[:begin] + text[end:].replace('{{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: "00:05:00"}}',
                                             "{{" + escaped + "}}")
