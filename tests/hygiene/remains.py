"""What this process holds: descriptors, tasks, threads at work."""

import os
from collections import Counter
from pathlib import Path

import trio

from tests.servers import leftovers


def held() -> Counter[str]:
    """Each thing by its name, as often as it is held. Idle threads of trio's cache are nobody's."""
    things = Counter(f"descriptor of {target}" for target in _descriptors())
    things.update(f"task {name}" for name in _tasks(trio.lowlevel.current_root_task()))
    things.update(f"thread {thread.name}" for thread in leftovers.current().threads)
    return things


def _descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # the listing's own
            continue
        kind, bracket, _ = target.partition(":[")
        found.append(kind if bracket else target)
    return found


def _tasks(task: trio.lowlevel.Task | None) -> list[str]:
    if task is None:
        return []
    children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return [task.name, *(name for child in children for name in _tasks(child))]


def files_below(folder: Path) -> set[str]:
    return {os.fspath(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
