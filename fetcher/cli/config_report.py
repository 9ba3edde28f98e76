"""`fetcher check-config`: what is in force, with secrets masked."""

from typing import Any

from rich.console import Console

from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.bootstrap.document import document_facts
from fetcher.cli.printing import add_row, listing, print_json, print_plain
from fetcher.logs import default_level
from fetcher.settings import Role, SettingNotes, Settings, is_read_by, shown_value


def show_config(
    settings: Settings, role: Role, notes: SettingNotes, console: Console, *, as_json: bool
) -> None:
    """With ``as_json`` the document stands alone on standard output, what is noted on the other."""
    values = effective(settings, role)
    if as_json:
        print_json(values, indent=2)
        show_notes(settings, notes, Console(stderr=True))
        return
    table = listing("Settings in force", "name", "value", whole=("name",))
    chosen_by = _chosen_by(settings)
    for name, value in values.items():
        why = f" (by {chosen_by[name]})" if name in chosen_by else ""
        add_row(table, name, "" if value is None else f"{value}{why}")
    console.print(table)
    show_notes(settings, notes, console)
    console.print("settings: OK")


def show_notes(settings: Settings, notes: SettingNotes, console: Console) -> None:
    for warning in notes.warnings:
        print_plain(console, f"warning: {warning}")
    for problem in environment_sources(settings.datasource_groups).skipped:
        print_plain(console, f"warning: {problem}: the internal data source is skipped")
    if notes.ignored:
        print_plain(console, f"ignored: {', '.join(notes.ignored)}")


def effective(settings: Settings, role: Role) -> dict[str, Any]:
    """Each setting that the role reads by its variable; those of internal data sources as far as
    they are in use."""
    values = {
        name.upper(): shown_value(name.upper(), getattr(settings, name))
        for name in type(settings).model_fields
        if name != "datasource_groups" and is_read_by(role, name)
    }
    for name, in_force in _unless_said(settings).items():
        if name in values and values[name] in ("", None):
            values[name] = shown_value(name, in_force)
    found = environment_sources(settings.datasource_groups).connections
    return values | {"DATASOURCE_*_CONFIG_NAME": ", ".join(found)}


def _unless_said(settings: Settings) -> dict[str, object]:
    """What counts where a variable is not set, of those whose default follows from others."""
    facts = document_facts(settings)
    address = settings.listen_address
    return {
        "ENV_NAME": "local",
        "LOG_LEVEL": default_level(settings.env_name),
        "SERVER_ADDRESS": address,
        "SERVER_PORT": int(address.rpartition(":")[2]),
        "HEALTH_PORT": settings.health_address_port,
        "SWAGGER_TITLE": facts.title,
        "SWAGGER_VERSION": facts.version,
        "RABBITMQ_FETCHER_WORK_QUEUE": settings.work_queue,
        "RABBITMQ_JOB_EVENTS_EXCHANGE": settings.events_exchange,
        "STREAMING_CLOUDEVENTS_SOURCE": settings.events_source,
        "RECORD_STORE": "sqlite" if settings.record_store_is_embedded else "mongo",
        "QUEUE_BACKEND": "memory" if settings.queue_is_embedded else "amqp",
        "OBJECT_STORE": "folder" if settings.object_store_is_embedded else "s3",
        "CACHE_BACKEND": "redis" if settings.uses_redis else "memory",
        "RESULT_PREVIEW_ENABLED": settings.previews_results,
        "DATASOURCE_HOST_GUARD": settings.guards_hosts,
    }


def _chosen_by(settings: Settings) -> dict[str, str]:
    """What chose a part that is no embedded one, where no switch did."""
    each_tenants = "MULTI_TENANT_ENABLED" if settings.multi_tenant_enabled else ""
    addresses = {
        "RECORD_STORE": (
            settings.record_store,
            settings.record_store_is_embedded,
            each_tenants or ("MONGO_HOST" if settings.mongo_host else "MONGO_URI"),
        ),
        "QUEUE_BACKEND": (
            settings.queue_backend,
            settings.queue_is_embedded,
            each_tenants or "RABBITMQ_HOST",
        ),
        "OBJECT_STORE": (
            settings.object_store,
            settings.object_store_is_embedded,
            "OBJECT_STORAGE_BUCKET",
        ),
        "CACHE_BACKEND": (settings.cache_backend, not settings.uses_redis, "REDIS_HOST"),
    }
    return {
        name: address
        for name, (switch, is_embedded, address) in addresses.items()
        if switch is None and not is_embedded
    }
