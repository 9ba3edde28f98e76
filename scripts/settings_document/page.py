"""The page of all settings."""

from fetcher.settings import Role
from fetcher.settings.model import GROUPS
from scripts.settings_document.described import DescribedSetting, settings_of

HEAD = """\
# Settings

<!-- Made by `make docs` from fetcher/settings/groups: change it there. -->

Every setting is a variable of the environment, read once at the start. With nothing set at all
everything runs embedded. `fetcher check-config --role=…` opens nothing, names every violation at
once with its rule (exit code 2), warns, and shows what is in force with secrets masked; a process
checks the same before it opens anything.

- Beneath the environment lies a file `.env` of the working directory. It is read only where
  `ENV_NAME` is unset, blank or `local` in the environment itself, and overwrites nothing;
  `${OTHER}` in it is replaced.
- A blank value counts as unset.
- **Booleans** are `true`, `false`, `1`, `0`, `yes`, `no`, `on`, `off`, `t` or `f`, in any case.
  Booleans and numbers are strict: other text refuses the start.
- **Secrets** are never shown. Each may lie in a file that `<NAME>_FILE` names: a regular file of
  at most 64 KiB in UTF-8, not empty; one line end at its end is dropped, all else counts. Setting
  both is a violation.
- **A name that looks like a slip** is warned of (`did you mean …?`), by `check-config` and in the
  log (`setting_doubtful`). Where it begins with `FETCHER_` it refuses the start: those names are
  ours alone, and one of them keeps strangers out.
- **Names of the reference that nobody reads** are accepted, with those that have no effect; the
  log has those that are set (`settings_ignored`).

To begin with: [manager.env.example](../config/manager.env.example),
[worker.env.example](../config/worker.env.example), [all.env.example](../config/all.env.example).
"""

SOURCES = """\
Sources of the operator are described by groups of variables, `DATASOURCE_{NAME}_…`: [internal data
sources](operations.md#internal-data-sources).
"""

ROLES = {Role.ALL: "both", Role.MANAGER: "manager", Role.WORKER: "worker"}


def page() -> str:
    parts = [HEAD]
    for group in GROUPS:
        rows = "\n".join(_row(setting) for setting in settings_of(group))
        parts.append(
            f"## {group.TITLE}\n\n"
            "| setting | type | default | allowed | read by | |\n"
            "|---|---|---|---|---|---|\n"
            f"{rows}\n"
        )
        if group.TITLE == "Sources":
            parts.append(SOURCES)
    return "\n".join(parts)


def _row(setting: DescribedSetting) -> str:
    meaning = setting.meaning if setting.has_effect else f"No effect: {setting.meaning}"
    cells = (
        f"`{setting.name}`",
        setting.type_name,
        setting.default,
        setting.allowed,
        ROLES[setting.role],
        meaning,
    )
    return f"| {' | '.join(cells)} |"
