"""What somebody should know about settings that are usable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from fetcher.settings.environment_file import ProcessEnvironment
from fetcher.settings.fields import NoEffect
from fetcher.settings.loading import KNOWN_NAMES, SECRET_NAMES
from fetcher.settings.model import Settings
from fetcher.settings.names import groups_without_name, misspelt, not_read


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNotes:
    """``warnings`` begin with a setting's name; ``ignored`` are names that are set in vain."""

    warnings: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    misses_env_file: bool = False


def notes_on(settings: Settings, process: ProcessEnvironment, *, now: datetime) -> SettingNotes:
    """``process`` is what the settings were loaded from."""
    environment = process.variables
    idle = tuple(
        name.upper()
        for name, field in Settings.model_fields.items()
        if environment.get(name.upper(), "").strip()
        and any(isinstance(mark, NoEffect) for mark in field.metadata)
    )
    return SettingNotes(
        warnings=(
            *_unknown_names(environment),
            *_replaced_numbers(settings, environment),
            *_prefix(settings),
            *_previous_keys(settings, now),
            *_groups_beside_tenants(settings),
        ),
        ignored=tuple(sorted({*idle, *not_read(environment)})),
        misses_env_file=process.is_missing,
    )


def _unknown_names(environment: Mapping[str, str]) -> Iterator[str]:
    plain_files = {
        f"{name}_FILE"
        for name in KNOWN_NAMES - SECRET_NAMES
        if not name.endswith("_FILE") and f"{name}_FILE" in environment
    }
    for name in sorted(plain_files):
        yield f"{name}: is not read, only secrets may lie in files"
    rest = {name: value for name, value in environment.items() if name not in plain_files}
    for name, meant in misspelt(rest, KNOWN_NAMES).items():
        yield f"{name}: unknown; did you mean {meant}?"
    for group in groups_without_name(environment, KNOWN_NAMES):
        yield f"DATASOURCE_{group}_CONFIG_NAME: not set, so DATASOURCE_{group}_* is not read"


def _replaced_numbers(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """Where 0, a negative number or one out of range means another one."""
    for field_name in Settings.model_fields:
        name = field_name.upper()
        value = getattr(settings, field_name)
        text = environment.get(name, "").strip()
        if not text or not isinstance(value, int | float | None) or isinstance(value, bool):
            continue
        try:
            is_same = float(text) == value
        except ValueError:
            continue
        if not is_same:
            counts = "the default" if value is None else f"{value:.15g}"
            yield f"{name}: {counts} counts instead of what is set"


def _prefix(settings: Settings) -> Iterator[str]:
    prefix = settings.object_storage_key_prefix
    if prefix and not prefix.endswith("/"):
        yield "OBJECT_STORAGE_KEY_PREFIX: does not end in '/'; it is put in front verbatim"


def _groups_beside_tenants(settings: Settings) -> Iterator[str]:
    """One source for all tenants would be a way from one to another."""
    if settings.multi_tenant_enabled and settings.datasource_groups:
        yield (
            "DATASOURCE_*_CONFIG_NAME: not read with MULTI_TENANT_ENABLED=true: internal sources"
            " come from the Tenant Manager"
        )


def _previous_keys(settings: Settings, now: datetime) -> Iterator[str]:
    """A key that was left behind, and still lets its holder forge, is forgotten easily."""
    name, until = "APP_ENC_KEY_PREVIOUS_UNTIL", settings.app_enc_key_previous_until
    has_previous = bool(settings.app_enc_key_previous.get_secret_value().strip())
    if until is None and has_previous:
        yield f"{name}: not set, so earlier keys verify messages and results without end"
    elif until is not None and not has_previous:
        yield f"{name}: has no effect without APP_ENC_KEY_PREVIOUS"
    elif until is not None and until <= now:
        yield f"{name}: is over: earlier keys only open stored credentials"
