"""Sources: how they are read, and which hosts they may have."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from fetcher.settings.fields import MOST_SECONDS, Allowed, Boolean, SettingsGroup, Unset
from fetcher.settings.host_entries import checked_hosts, checked_ports
from fetcher.settings.source_groups import SourceGroup


class SourceSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Sources"

    datasource_query_timeout_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How long a source's statement may take, in seconds; at most"
            " `ENGINE_TIMEOUT_SEC` less 10",
        ),
    ] = 120.0
    datasource_lock_timeout_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How long it may wait for somebody's lock, in seconds",
        ),
    ] = 30.0
    datasource_max_cell_bytes: Annotated[
        int,
        Field(
            gt=0,
            le=64 * 1024 * 1024,
            description="A larger value fails the job with `cell_too_large`",
        ),
    ] = 16 * 1024 * 1024
    datasource_include_views: Annotated[
        Boolean,
        Field(description="Views, materialized views and foreign tables are sources too"),
    ] = False
    datasource_legacy_default_schema: Annotated[
        Boolean,
        Field(
            description="Names without a schema lie in the type's default schema whatever the"
            " connection's says, as in the reference"
        ),
    ] = False
    datasource_sqlserver_trust_cert: Annotated[
        Boolean,
        Field(description="Mode `true` of SQL Server verifies nothing where there is no CA"),
    ] = False
    datasource_sqlite_dir: Annotated[
        Path | None,
        Field(description="Where SQLite files lie; refused with `DEPLOYMENT_MODE=saas`"),
        Unset("`sources/` of the data folder"),
    ] = None
    datasource_host_guard: Annotated[
        Boolean | None,
        Field(description="The host of every stored connection is judged"),
        Unset("`MULTI_TENANT_ENABLED`"),
    ] = None
    datasource_host_allow: Annotated[
        str,
        AfterValidator(checked_hosts),
        Field(description="May be dialled whatever else is refused; our own hosts only by name"),
        Allowed("networks, addresses and names, with commas between them"),
    ] = ""
    datasource_host_deny: Annotated[
        str,
        AfterValidator(checked_hosts),
        Field(description="Refused as well"),
        Allowed("networks, addresses and names, with commas between them"),
    ] = ""
    datasource_port_deny: Annotated[
        str,
        AfterValidator(checked_ports),
        Field(description="Refused wherever they are"),
        Allowed("ports, with commas between them"),
    ] = ""
    crypto_hash_secret_key_plugin_crm: Annotated[
        SecretStr, Field(description="The key of hashes in `plugin_crm`")
    ] = SecretStr("")
    crypto_encrypt_secret_key_plugin_crm: Annotated[
        SecretStr, Field(description="The key of sealed fields in `plugin_crm`")
    ] = SecretStr("")
    datasource_groups: tuple[SourceGroup, ...] = ()
    """Not a variable of this name, but all of ``DATASOURCE_{NAME}_*``."""
