"""Where records and results lie."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, SecretStr

from fetcher.settings.fields import (
    MANAGER,
    WORKER,
    Allowed,
    Boolean,
    Example,
    NoEffect,
    SettingsGroup,
    Unset,
    positive_or_default,
    trimmed_lower,
)


class EmbeddedSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Embedded parts"

    fetcher_data_dir: Annotated[
        Path,
        Field(description="The folder of the embedded parts; one process owns it"),
    ] = Path("fetcher-data")
    spool_dir: Annotated[
        str,
        Field(
            description="Where sources that are ahead of their turn wait, encrypted. `off`: they"
            " wait with their transaction open; a folder of that name is `./off`"
        ),
        WORKER,
        Unset("`spool/` of the data folder, else the system's temporary folder"),
    ] = ""
    record_store: Annotated[
        Literal["sqlite", "mongo"] | None,
        BeforeValidator(trimmed_lower),
        Field(description="Where records lie, if the settings of MongoDB shall not decide"),
        Allowed("`sqlite`, `mongo`"),
        Unset("`mongo` with `MONGO_HOST` or a whole `MONGO_URI`, else `sqlite`"),
    ] = None
    queue_backend: Annotated[
        Literal["memory", "amqp"] | None,
        BeforeValidator(trimmed_lower),
        Field(description="What carries jobs and events, if `RABBITMQ_HOST` shall not decide"),
        Allowed("`memory`, `amqp`"),
        Unset("`amqp` with `RABBITMQ_HOST`, else `memory`"),
    ] = None
    object_store: Annotated[
        Literal["folder", "s3"] | None,
        BeforeValidator(trimmed_lower),
        Field(description="Where results lie, if `OBJECT_STORAGE_BUCKET` shall not decide"),
        Allowed("`folder`, `s3`"),
        Unset("`s3` with `OBJECT_STORAGE_BUCKET`, else `folder`"),
    ] = None
    cache_backend: Annotated[
        Literal["memory", "redis"] | None,
        BeforeValidator(trimmed_lower),
        Field(description="Where managers remember, if `REDIS_HOST` shall not decide"),
        Allowed("`memory`, `redis`"),
        MANAGER,
        Unset("`redis` with `REDIS_HOST`, else `memory`"),
    ] = None


class RecordStoreSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Record store: MongoDB"

    mongo_uri: Annotated[
        SecretStr,
        Field(
            description="The scheme alone (`mongodb`, `mongodb+srv`), or a whole address; then"
            " host, port, user, password and parameters are not looked at"
        ),
        Unset("`mongodb`"),
        Example("mongodb"),
    ] = SecretStr("")
    mongo_host: Annotated[
        str,
        Field(description="The server"),
        Unset("SQLite in the data folder"),
        Example("mongo.example.com"),
    ] = ""
    mongo_port: Annotated[
        str,
        Field(description="Its port; not with `mongodb+srv`"),
        Allowed("1 to 65535"),
        Unset("27017"),
        Example("27017"),
    ] = ""
    mongo_name: Annotated[
        str,
        Field(description="The database's name, put in lower case"),
        Unset("required with MongoDB"),
        Example("fetcher-db"),
    ] = ""
    mongo_user: Annotated[str, Field(description="The user"), Example("fetcher")] = ""
    mongo_password: Annotated[SecretStr, Field(description="The user's password"), Example("")] = (
        SecretStr("")
    )
    mongo_parameters: Annotated[
        str,
        Field(description="Parameters at the end of the address, percent-encoded where needed"),
        Allowed("`k=v&k=v`"),
        Example("tls=true"),
    ] = ""
    mongo_tls_ca_cert: Annotated[
        str,
        Field(description="Turns TLS on, with these as the only trust roots"),
        Allowed("base64 of PEM"),
        Unset("the system's"),
    ] = ""
    mongo_max_pool_size: Annotated[
        int,
        positive_or_default(100),
        Field(description="Connections of one process"),
        Allowed("at least 1; 0 or less: the default"),
    ] = 100


class ObjectStorageSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Results: S3"

    object_storage_endpoint: Annotated[
        str,
        Field(description="The server of the bucket"),
        Allowed("`http://…` or `https://…`"),
        Unset("AWS"),
        Example("https://s3.example.com"),
    ] = ""
    object_storage_region: Annotated[str, Field(description="The bucket's region")] = "us-east-1"
    object_storage_bucket: Annotated[
        str,
        Field(
            description="The bucket. A manager needs it to serve results; without it those"
            " operations answer 503"
        ),
        Unset("`objects/` of the data folder"),
        Example("fetcher-results"),
    ] = ""
    object_storage_key_prefix: Annotated[
        str,
        Field(description="Stands before every key exactly as it is: end it with `/`"),
    ] = ""
    object_storage_access_key_id: Annotated[
        SecretStr,
        Field(description="The bucket's user; set both or neither"),
        Unset("the ambient chain of AWS"),
    ] = SecretStr("")
    object_storage_secret_key: Annotated[
        SecretStr,
        Field(description="The user's secret"),
        Unset("the ambient chain of AWS"),
    ] = SecretStr("")
    object_storage_use_path_style: Annotated[
        Boolean, Field(description="`true` for MinIO and SeaweedFS")
    ] = False
    object_storage_ttl: Annotated[
        str,
        Field(description="S3 does not know it: retention is a rule of the bucket"),
        WORKER,
        NoEffect(),
    ] = ""
