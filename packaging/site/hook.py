"""For mkdocs: pages from outside docs/, and links between all of them.

In the repository a link leads from file to file. On the site the pages lie in one folder. A link to a file that is not
on the site becomes its name.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
# File of the repository: its place on the site.
OTHERS = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
          "bench/RESULTS.md": "measured.md",
          "workflows/README.md": "workflows.md", "workflows/workflow.schema.json": "workflow.schema.json",
          "templates/example-site.yaml": "example-site.yaml", "templates/slurm/megatron.yaml": "megatron.yaml"}
OTHERS.update({path.relative_to(ROOT).as_posix(): f"pictures/{path.name}"
               for path in ROOT.glob("workflows/pictures/*.svg")})
# [text][1], and where the file says what 1 is.
REFERENCE = re.compile(r"\[([^\]]*)\]\[(\w+)\]")
DEFINITION = re.compile(r"^\[(\w+)\]: (\S+)\n", re.M)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def place(path):
    """Where a file of the repository is on the site, or None."""
    if path in OTHERS:
        return OTHERS[path]
    parts = path.split("/")
    return parts[1] if len(parts) == 2 and parts[0] == "docs" else None


def source(page):
    """The file of the repository that a page of the site is."""
    return {to: path for path, to in OTHERS.items()}.get(page, f"docs/{page}")


def on_files(files, config):
    for path, to in OTHERS.items():
        files.append(File.generated(config, to, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    path = source(page.file.src_uri)
    defined = dict(DEFINITION.findall(markdown))
    markdown = REFERENCE.sub(lambda m: f"[{m[1]}]({defined[m[2]]})" if m[2] in defined else m[0],
                             DEFINITION.sub("", markdown))

    def renewed(match):
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        to = place(linked)
        if to is None:
            if not (ROOT / linked).exists():
                return match[0]  # mkdocs says that it is not there
            return text if text.startswith("`") or image else f"`{text}`"
        return f"{image}[{text}]({to}{anchor})"

    return LINK.sub(renewed, markdown)
