"""Keys, and what protects the connections to dependencies."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, SecretStr

from fetcher.settings.fields import Allowed, Boolean, Example, SettingsGroup, Unset, moment_or_day


class KeySettings(SettingsGroup):
    TITLE: ClassVar[str] = "Keys and TLS"

    app_enc_key: Annotated[
        SecretStr,
        Field(
            description="The master key, from which all others are derived; the same in manager and"
            " worker. `fetcher keys generate` makes one"
        ),
        Allowed("base64 of 32 bytes or more"),
        Unset("required; with an embedded part `master.key` of the data folder"),
        Example(""),
    ] = SecretStr("")
    app_enc_key_version: Annotated[
        str,
        Field(description="The name of `APP_ENC_KEY`, kept with everything that it seals"),
    ] = "1"
    app_enc_key_previous: Annotated[
        SecretStr,
        Field(description="Earlier keys, for reading and verifying"),
        Allowed("`<version>=<base64>`, with commas between them"),
    ] = SecretStr("")
    app_enc_key_previous_until: Annotated[
        datetime | None,
        BeforeValidator(moment_or_day),
        Field(
            description="From then on what earlier keys have signed or sealed is refused: messages,"
            " events and results. Stored credentials they open for ever"
        ),
        Allowed("RFC 3339 with a zone, or a date: to the end of that day in UTC"),
        Unset("no end"),
    ] = None
    allow_insecure_tls: Annotated[
        Boolean,
        Field(
            description="Permits connections without TLS to MongoDB, RabbitMQ, Redis and the"
            " bucket. For development; refused with `DEPLOYMENT_MODE=saas`"
        ),
    ] = False
