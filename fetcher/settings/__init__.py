"""Every setting, typed and validated together, before anything is opened.

A text that is no number or no boolean stops the start. A secret may come from a file:
``NAME_FILE`` stands for ``NAME``. A blank value counts as unset.
"""

from fetcher.settings.credentials_in_text import MASK
from fetcher.settings.environment_file import ProcessEnvironment, process_environment
from fetcher.settings.host_entries import entries_of, ports_of
from fetcher.settings.loading import SECRET_NAMES, SettingsRefused, load_settings, secret_in
from fetcher.settings.model import UNKNOWN_VERSION, DeploymentMode, Role, Settings, is_read_by
from fetcher.settings.mongo_rules import mongo_ca_pem, mongo_hosts, mongo_uri
from fetcher.settings.notes import SettingNotes, notes_on
from fetcher.settings.redis_rules import redis_ca_pem, redis_place
from fetcher.settings.secret_values import secrets_of
from fetcher.settings.shown_values import shown_value
from fetcher.settings.source_groups import SourceGroup, source_groups

__all__ = [
    "MASK",
    "SECRET_NAMES",
    "UNKNOWN_VERSION",
    "DeploymentMode",
    "ProcessEnvironment",
    "Role",
    "SettingNotes",
    "Settings",
    "SettingsRefused",
    "SourceGroup",
    "entries_of",
    "is_read_by",
    "load_settings",
    "mongo_ca_pem",
    "mongo_hosts",
    "mongo_uri",
    "notes_on",
    "ports_of",
    "process_environment",
    "redis_ca_pem",
    "redis_place",
    "secret_in",
    "secrets_of",
    "shown_value",
    "source_groups",
]
