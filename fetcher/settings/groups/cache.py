"""What managers share."""

from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from fetcher.settings.fields import MANAGER, Allowed, Boolean, Example, SettingsGroup, Unset


class CacheSettings(SettingsGroup):
    TITLE: ClassVar[str] = "What managers share: Redis or Valkey"

    redis_host: Annotated[
        str,
        Field(description="Name or address"),
        Allowed("a host, `host:port` too"),
        MANAGER,
        Unset("each process remembers for itself"),
        Example("redis.example.com"),
    ] = ""
    redis_port: Annotated[
        int,
        Field(ge=1, le=65535, description="Its port, where `REDIS_HOST` has none"),
        MANAGER,
    ] = 6379
    redis_user: Annotated[
        str, Field(description="An ACL user; without it the server's password counts"), MANAGER
    ] = ""
    redis_password: Annotated[
        SecretStr, Field(description="The password"), MANAGER, Example("")
    ] = SecretStr("")
    redis_db: Annotated[int, Field(ge=0, description="The database's index"), MANAGER] = 0
    redis_tls: Annotated[
        Boolean,
        Field(description="TLS 1.2 or later, certificate and name verified"),
        MANAGER,
        Example("true"),
    ] = False
    redis_ca_cert: Annotated[
        str,
        Field(description="The only trust roots; with `REDIS_TLS=true`"),
        Allowed("base64 of PEM"),
        MANAGER,
        Unset("the system's"),
    ] = ""
    schema_cache_ttl_seconds: Annotated[
        float,
        Field(ge=0, le=86_400, description="How long schemas are remembered; 0: not at all"),
        MANAGER,
    ] = 300.0
