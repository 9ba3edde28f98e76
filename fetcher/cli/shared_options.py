"""Options that commands share, and whose settings they read."""

import os
from typing import Annotated, Literal

from cyclopts import Parameter

from fetcher.settings import Role, Settings, load_settings

RoleName = Literal["manager", "worker", "all"]
RoleOption = Annotated[RoleName, Parameter(help="Which actors this process runs.")]


def settings_for(role: RoleName) -> Settings:
    """Raise SettingsRefused."""
    return load_settings(os.environ, Role(role))
