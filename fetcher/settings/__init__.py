"""Every setting, typed and validated together, before anything is opened.

A text that is no number or no boolean stops the start. A secret may come from a file:
``NAME_FILE`` stands for ``NAME``. A blank value counts as unset.
"""

from fetcher.settings.host_entries import entries_of, ports_of
from fetcher.settings.loading import SECRET_NAMES, SettingsRefused, load_settings
from fetcher.settings.model import DeploymentMode, Role, Settings
from fetcher.settings.redis_rules import redis_ca_pem, redis_place
from fetcher.settings.rules import mongo_hosts, mongo_uri
from fetcher.settings.source_groups import SourceGroup, source_groups

__all__ = [
    "SECRET_NAMES",
    "DeploymentMode",
    "Role",
    "Settings",
    "SettingsRefused",
    "SourceGroup",
    "entries_of",
    "load_settings",
    "mongo_hosts",
    "mongo_uri",
    "ports_of",
    "redis_ca_pem",
    "redis_place",
    "source_groups",
]
