"""An environment for each role, to be copied and filled in."""

import textwrap
from collections.abc import Iterator

from fetcher.settings import Role
from fetcher.settings.model import GROUPS
from scripts.settings_document.described import DescribedSetting, settings_of

WIDTH = 100

PRESUMED = (
    " TLS everywhere is presumed, and an authorization service; with plain local servers:"
    " docs/quick-start.md."
)

HEADS = {
    Role.MANAGER: "A manager's environment. Put in your hosts, and what stands empty." + PRESUMED,
    Role.WORKER: "A worker's environment. Put in your hosts, and what stands empty." + PRESUMED,
    Role.ALL: (
        "The environment of one process that does everything. Nothing needs to be set: what is set"
        " replaces an embedded part by a real one."
    ),
}

COMMON_HEAD = (
    "Made by `make docs`. Lines that begin with `# NAME=` show the default. Secrets may lie in"
    " files: NAME_FILE=/run/secrets/name instead of NAME=. Where a shell sources this file, a value"
    " with a blank or one of & ; $ # stands between single quotes. All of it: docs/settings.md."
    " Check it with: fetcher check-config --role="
)


def example(role: Role) -> str:
    """The text of the file; only what the role reads, without what has no effect."""
    lines = [*_comment(HEADS[role]), *_comment(f"{COMMON_HEAD}{role.value}")]
    for group in GROUPS:
        shown = [each for each in settings_of(group) if each.has_effect and each.is_read_by(role)]
        if shown:
            lines += ["", f"# ---- {group.TITLE} ----"]
        for setting in shown:
            lines += ["", *_lines(setting, role)]
    return "\n".join(lines) + "\n"


def _lines(setting: DescribedSetting, role: Role) -> Iterator[str]:
    facts = [setting.meaning]
    if setting.allowed:
        facts.append(f"Allowed: {setting.allowed}")
    if setting.default and setting.default.strip("`") != setting.plain_default:
        facts.append(f"Default: {setting.default}")
    yield from _comment(". ".join(facts).replace("`", ""))
    if setting.example is None or role is Role.ALL:
        yield f"# {setting.name}={setting.plain_default}"
    else:
        yield f"{setting.name}={setting.example}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
