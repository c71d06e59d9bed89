"""Processes of this host, out of /proc."""
import os


def processes():
    """pid -> (parent, state) of every process."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(name)] = (int(fields[1]), fields[0])
    return found


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def descendants(root):
    everyone = processes()
    members = {root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in everyone.items() if parent in members} - members
        members |= more
        grown = bool(more)
    return {pid for pid in members - {root} if everyone.get(pid, (0, "Z"))[1] != "Z"}


def kill_quietly(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
