"""CPU time and memory of processes on this machine, by what the kernel says of them."""

import os
import resource
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far; its children are not counted."""
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS


def server_cpu_seconds(pid: int | None) -> float | None:
    """The same with the processes that it started and that have ended: a server's sessions."""
    if pid is None:
        return None
    after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in after_name[11:15]) / TICKS


def children_cpu_seconds() -> float:
    """Of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rss_kib(pid: int) -> int:
    """Memory that it holds now."""
    status = (_PROC / str(pid) / "status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


def idle_seconds() -> float:
    """How long cores of this machine have had nothing to do, summed over them."""
    fields = (_PROC / "stat").read_text().split(maxsplit=6)
    return (int(fields[4]) + int(fields[5])) / TICKS


def listener(port: int) -> int | None:
    """The process that listens on a TCP port; None where it is on another machine, or not ours."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in _PROC.iterdir():
        if process.name.isdigit() and sockets & _open_files(process):
            return int(process.name)
    return None


def _listening_inodes(port: int) -> list[str]:
    inodes = []
    for table in ("tcp", "tcp6"):
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.append(fields[9])
    return inodes


def _open_files(process: Path) -> set[str]:
    try:
        return {str(entry.readlink()) for entry in (process / "fd").iterdir()}
    except OSError:
        return set()  # ended meanwhile, or somebody else's
