"""Who may call the API, and what it tells of itself."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from fetcher.settings.fields import (
    MANAGER,
    Allowed,
    Boolean,
    Example,
    NoEffect,
    SettingsGroup,
    Unset,
    positive_or_default,
)
from fetcher.settings.origins import checked_origins


class CallerSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Callers"

    plugin_auth_enabled: Annotated[
        Boolean,
        Field(description="The authorization service is asked for every operation"),
        MANAGER,
        Example("true"),
    ] = False
    plugin_auth_address: Annotated[
        str,
        Field(description="The authorization service"),
        Allowed("`http://…` or `https://…`, without user, query and fragment"),
        MANAGER,
        Unset("required with `PLUGIN_AUTH_ENABLED=true`"),
        Example("https://auth.example.com"),
    ] = ""
    plugin_auth_jwks_url: Annotated[
        str,
        Field(description="Keys by which tokens are verified here too"),
        Allowed("`http://…` or `https://…`, without user and fragment"),
        MANAGER,
    ] = ""
    fetcher_access_token: Annotated[
        SecretStr,
        Field(description="Without the service: the one token that callers need"),
        Allowed("16 to 1024 printable ASCII characters without spaces"),
        MANAGER,
    ] = SecretStr("")
    cors_allowed_origins: Annotated[
        str,
        AfterValidator(checked_origins),
        Field(description="Web pages that may read answers"),
        Allowed("`*`, or origins with commas between them"),
        MANAGER,
    ] = "*"
    max_pagination_limit: Annotated[
        int,
        positive_or_default(100),
        Field(description="The highest `limit` of a list"),
        Allowed("at least 1; 0 or less: the default"),
        MANAGER,
    ] = 100
    max_pagination_month_date_range: Annotated[
        int,
        positive_or_default(1),
        Field(description="So many months at most between `startDate` and `endDate`"),
        Allowed("at least 1; 0 or less: the default"),
        MANAGER,
    ] = 1


class DocumentSettings(SettingsGroup):
    TITLE: ClassVar[str] = "The API's document and the console"

    console_enabled: Annotated[
        bool, Field(description="Serve the console, a page for people, at `/console`"), MANAGER
    ] = True

    swagger_title: Annotated[str, Field(description="What the document calls the API"), MANAGER] = (
        ""
    )
    swagger_description: Annotated[
        str, Field(description="What it says about the API"), MANAGER
    ] = ""
    swagger_version: Annotated[str, Field(description="The version that it names"), MANAGER] = ""
    swagger_host: Annotated[
        str,
        Field(description="Where it says that the API is; anything else is not looked at"),
        Allowed("`name:port`"),
        MANAGER,
    ] = ""
    swagger_base_path: Annotated[
        str, Field(description="The path where it says that the API is"), MANAGER
    ] = ""
    swagger_schemes: Annotated[
        str, Field(description="The scheme by which it says that the API is called"), MANAGER
    ] = ""
    swagger_left_delim: Annotated[
        str, Field(description="A mark of the reference's templates"), MANAGER, NoEffect()
    ] = ""
    swagger_right_delim: Annotated[
        str, Field(description="A mark of the reference's templates"), MANAGER, NoEffect()
    ] = ""
