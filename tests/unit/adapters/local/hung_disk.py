"""What a spool has open in a folder, and a disk that does not answer."""

import threading
from collections.abc import Callable
from pathlib import Path

import trio


def open_in(folder: Path) -> dict[int, str]:
    """This process's descriptors of files in the folder, with the names the kernel gives them."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # the listing's own
            continue
        if target.startswith(f"{folder}/"):
            found[int(entry.name)] = target
    return found


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def until_closed(folder: Path) -> None:
    with trio.fail_after(5):
        while open_in(folder):
            await trio.lowlevel.checkpoint()


class HungDisk:
    """A call of the system that hangs until ``answers`` is set."""

    def __init__(self) -> None:
        self.was_asked = threading.Event()
        self.answers = threading.Event()

    def hangs(self, call: Callable[..., int | bytes]) -> Callable[..., int | bytes]:
        def hang(*arguments: object) -> int | bytes:
            self.was_asked.set()
            assert self.answers.wait(10)
            return call(*arguments)

        return hang

    async def until_asked(self) -> None:
        assert await trio.to_thread.run_sync(self.was_asked.wait, 10)
