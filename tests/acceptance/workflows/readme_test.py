#!/usr/bin/env python3
"""workflows/README.md: every workflow has its section, a picture that Tally drew and commands that a dry run takes.

  readme_test.py TALLY SOURCE_DIR
"""
import re
import shlex
import xml.etree.ElementTree

import golden
from golden import SOURCE, check, tally

README = (SOURCE / "workflows/README.md").read_text()


def anchor(heading):
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


def sections():
    names = {path.stem for path in (SOURCE / "workflows").glob("*.yaml")}
    headings = re.findall(r"^## (.*)$", README, re.M)
    with_section = {name for name in names if any(f"`{name}.yaml`" in heading for heading in headings)}
    check(with_section == names, f"without a section: {names - with_section}")
    rows = dict(re.findall(r"^\| \[([^\]]+)\]\(#([^)]+)\) \|", README, re.M))
    check(set(rows) == names, f"the first table has {sorted(rows)}")
    for name, target in rows.items():
        check(target in [anchor(heading) for heading in headings], f"{name}: there is no heading #{target}")
    for picture in re.findall(r"!\[[^\]]*\]\((pictures/[^)]+)\)", README):
        root = xml.etree.ElementTree.parse(SOURCE / "workflows" / picture).getroot()
        check(root.tag.endswith("svg") and root.attrib["viewBox"], picture)
    check({f"pictures/{name}.svg" for name in names} <= set(re.findall(r"\((pictures/[^)]+)\)", README)), "pictures")
    for target in re.findall(r"\]\((\.\./[^)#]+)", README):
        check((SOURCE / "workflows" / target).exists(), f"there is no {target}")


def commands(cwd):
    text = README.replace("\\\n", " ")
    seen = 0
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] != ["tally", "run"] or "workflows/NAME.yaml" in words:
                continue
            words[2] = str(SOURCE / words[2])
            # Files of the reader's own are in no dry run's way.
            tally(*words[1:], *([] if "-n" in words else ["-n"]), "-o", "run", cwd=cwd)
            seen += 1
    check(seen >= 20, f"{seen} commands")
    check(not list(cwd.iterdir()), "a dry run wrote something")


if __name__ == "__main__":
    sections()
    golden.in_a_folder(commands)
