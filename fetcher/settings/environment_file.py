"""The file `.env` beneath the environment of a process (spec configuration 1.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

from dotenv.parser import parse_stream
from dotenv.variables import parse_variables

from fetcher.settings.files import FileUnusable, text_of

FILE_NAME: Final = ".env"
MAX_FILE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnvironment:
    """``file`` is the one that was read, if any; ``is_missing``: it was looked for in vain."""

    variables: Mapping[str, str]
    file: Path | None = None
    is_missing: bool = False
    problems: tuple[str, ...] = ()


def process_environment(environment: Mapping[str, str], folder: Path) -> ProcessEnvironment:
    """``environment``, and beneath it the folder's file, where ENV_NAME lets it be read.

    What the environment has, also a blank value, is never overwritten. Whether the file is read is
    decided before, so an ENV_NAME that stands in it decides nothing.
    """
    env_name = environment.get("ENV_NAME", "")
    if env_name.strip() and env_name != "local":
        return ProcessEnvironment(variables=environment)
    path = folder / FILE_NAME
    if not path.exists():
        return ProcessEnvironment(variables=environment, is_missing=True)
    try:
        text = text_of(path, max_bytes=MAX_FILE_BYTES)
    except FileUnusable as unusable:
        return ProcessEnvironment(variables=environment, problems=(f"{FILE_NAME}: {unusable}",))
    variables = dict(environment)
    problems = []
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            problems.append(f"{FILE_NAME}: line {binding.original.line} is no NAME=value")
        elif binding.key is not None and binding.value is not None:
            expanded = "".join(atom.resolve(variables) for atom in parse_variables(binding.value))
            if binding.key not in environment:
                variables[binding.key] = expanded
    return ProcessEnvironment(variables=variables, file=path, problems=tuple(problems))
