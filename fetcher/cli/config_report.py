"""`fetcher check-config`: what is in force, with secrets masked."""

import json
from typing import Any

from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.bootstrap.document import document_facts
from fetcher.settings import Settings

MASK = "********"


def show_config(settings: Settings, console: Console, *, as_json: bool) -> None:
    values = effective(settings)
    if as_json:
        print(json.dumps(values, ensure_ascii=False, indent=2))
        return
    table = Table(title="Settings in force", title_justify="left")
    table.add_column("name")
    table.add_column("value", overflow="fold")
    for name, value in values.items():
        table.add_row(name, str(value))
    console.print(table)
    prefix = settings.object_storage_key_prefix
    if prefix and not prefix.endswith("/"):
        console.print(
            "warning: OBJECT_STORAGE_KEY_PREFIX does not end in '/': it is put in front verbatim"
        )
    for problem in environment_sources(settings.datasource_groups).skipped:
        console.print(f"warning: {problem}: the internal data source is skipped", markup=False)
    console.print("settings: OK")


def effective(settings: Settings) -> dict[str, Any]:
    """Each setting by its variable; those of internal data sources as far as they are in use."""
    values = {
        name.upper(): shown(getattr(settings, name))
        for name in type(settings).model_fields
        if name != "datasource_groups"
    }
    for name, in_force in _unless_said(settings).items():
        if values[name] in ("", None):
            values[name] = shown(in_force)
    found = environment_sources(settings.datasource_groups).connections
    return values | {"DATASOURCE_*_CONFIG_NAME": ", ".join(found)}


def _unless_said(settings: Settings) -> dict[str, object]:
    """What counts where a variable is not set, of those whose default follows from others."""
    facts = document_facts(settings)
    address = settings.listen_address
    return {
        "ENV_NAME": "local",
        "SERVER_ADDRESS": address,
        "SERVER_PORT": int(address.rpartition(":")[2]),
        "HEALTH_PORT": settings.health_address_port,
        "SWAGGER_TITLE": facts.title,
        "SWAGGER_VERSION": facts.version,
        "RABBITMQ_FETCHER_WORK_QUEUE": settings.work_queue,
        "RABBITMQ_JOB_EVENTS_EXCHANGE": settings.events_exchange,
        "STREAMING_CLOUDEVENTS_SOURCE": settings.events_source,
        "RESULT_PREVIEW_ENABLED": settings.previews_results,
        "DATASOURCE_HOST_GUARD": settings.guards_hosts,
    }


def shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    return value if isinstance(value, bool | int | float | None) else str(value)
