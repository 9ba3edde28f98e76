"""Everything that leaves a process, collected to be searched."""

import gzip
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.e2e.broker import Message
from tests.e2e.cluster import Answer
from tests.servers.otlp_double import OtlpDouble
from tests.servers.processes import FetcherProcess


class Places:
    """By name. A name that comes again is another place of the same kind."""

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}

    def add(self, name: str, content: bytes) -> None:
        self.found[f"{name} ({len(self.found)})"] = content

    def log_of(self, process: FetcherProcess) -> None:
        """What it wrote, once it has ended, or so far."""
        self.add("standard error", process.log_path.read_bytes())
        self.add("log", process.output_path.read_bytes())

    def list_of_processes(self, process: FetcherProcess) -> None:
        """What any user of the machine sees of it: the command line, and the threads' names."""
        of_it = Path(f"/proc/{process.pid}")
        self.add("command line", (of_it / "cmdline").read_bytes())
        for thread in (of_it / "task").iterdir():
            self.add("name of a thread", (thread / "comm").read_bytes())

    def answer(self, answer: Answer) -> Answer:
        """Body and headers; gives it on."""
        self.add("answer", json.dumps([answer.body, dict(answer.headers)]).encode())
        return answer

    def messages(self, messages: Iterable[Message]) -> None:
        for each in messages:
            self.add("message", each.body + repr(each.headers).encode())

    def traces(self, collector: OtlpDouble) -> None:
        for body in collector.bodies:
            self.add("trace", body)

    def folder(self, folder: Path, *, without: frozenset[str] = frozenset()) -> None:
        """Names and contents of its files, whatever form they have; archives are opened."""
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if without & set(relative.parts) or path.is_dir() or path.is_socket():
                continue
            self.add(f"file {relative}", str(relative).encode() + b"\n" + path.read_bytes())

    def archive(self, path: Path) -> None:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive.getmembers():
                file = archive.extractfile(member)
                if file is not None:
                    self.add(f"{path.name}: {member.name}", file.read())
        self.add(path.name, gzip.decompress(path.read_bytes()))

    def texts(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            self.add(name, text.encode())
