"""Internal data sources from the environment: spec datasources 19.10, configuration 17.9."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from fetcher.adapters.environment.internal_sources import EnvironmentSources, environment_sources
from fetcher.domain.connections import SourceType, TlsSettings
from fetcher.domain.internal_sources import InternalSourceMissing, internal_source_id
from fetcher.settings import source_groups

SECRET = "s3cret=&%20 ü"


def variables(name: str = "A", **changes: str) -> dict[str, str]:
    values = {
        "CONFIG_NAME": "midaz_onboarding",
        "TYPE": "postgresql",
        "HOST": "10.0.0.7",
        "PORT": "5432",
        "DATABASE": "onboarding",
        "USER": "reader",
        "PASSWORD": SECRET,
        **changes,
    }
    return {f"DATASOURCE_{name}_{suffix}": value for suffix, value in values.items()}


CRM = {"CONFIG_NAME": "plugin_crm", "TYPE": "MONGODB", "PORT": "27017", "DATABASE": "crm"}


def read(environment: dict[str, str]) -> EnvironmentSources:
    return environment_sources(source_groups(environment))


def test_a_group_becomes_an_internal_connection() -> None:
    found = read(variables(TYPE=" postgresql ", HOST=" db_1 ", SSLMODE="require"))
    assert found.skipped == ()
    connection = found.connections["midaz_onboarding"]
    assert connection.id == UUID("d23dda0c-5f1a-5d94-a584-ea056a9fa8c1")
    assert (connection.type, connection.host, connection.port) == ("POSTGRESQL", "db_1", 5432)
    assert (connection.database_name, connection.username) == ("onboarding", "reader")
    assert connection.tls == TlsSettings(mode="require")
    assert connection.is_internal
    assert (connection.encryption_key_version, connection.password_encrypted) == ("", "")
    assert connection.plain_password == SECRET
    assert (connection.product_name, connection.schema) == ("", None)
    assert connection.created_at.isoformat() == "0001-01-01T00:00:00+00:00"


def test_what_is_optional_may_be_missing() -> None:
    found = read(variables(USER="", PASSWORD=""))
    connection = found.connections["midaz_onboarding"]
    assert (connection.username, connection.plain_password, connection.tls) == ("", "", None)
    assert connection.metadata == {}


def test_the_whole_bundle_is_kept_where_there_is_a_mode() -> None:
    bundle = {"SSL_CA": "ca", "SSL_CERT": "cert", "SSL_KEY": "key"}
    tls = read(variables(SSLMODE="verify-full", **bundle)).connections["midaz_onboarding"].tls
    assert tls == TlsSettings(mode="verify-full", ca="ca", cert="cert", key="key")
    assert read(variables(**bundle)).connections["midaz_onboarding"].tls is None


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
def test_modes_of_postgresql(mode: str) -> None:
    assert read(variables(SSLMODE=mode)).connections["midaz_onboarding"].tls == TlsSettings(
        mode=mode
    )


@pytest.mark.parametrize("mode", ["disable", "false", "true", "enable", "insecure"])
def test_modes_of_mongodb(mode: str) -> None:
    assert read(variables(**CRM, SSLMODE=mode)).connections["plugin_crm"].tls == TlsSettings(
        mode=mode
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"SSLMODE": "REQUIRE"}, 'SSLMODE: is not an SSL mode of POSTGRESQL, did you mean "requ'),
        ({"SSLMODE": "on"}, "SSLMODE: is not an SSL mode of POSTGRESQL (valid modes"),
        ({"SSLMODE": " require"}, "SSLMODE: is not an SSL mode of POSTGRESQL"),
        ({**CRM, "SSLMODE": "preferred"}, "SSLMODE: is not an SSL mode of MONGODB"),
        # the type comes first
        ({"TYPE": "sqlite", "SSLMODE": "on"}, "TYPE: must be POSTGRESQL"),
        ({"TYPE": ""}, "TYPE: must be POSTGRESQL"),
        # improved: one that the registry does not have for this name
        ({"TYPE": "MONGODB"}, "TYPE: must be POSTGRESQL"),
        ({**CRM, "TYPE": "POSTGRESQL"}, "TYPE: must be MONGODB"),
        ({"TYPE": "MYSQL", "SSLMODE": "skip-verify"}, "TYPE: must be POSTGRESQL"),
        ({"HOST": " "}, "HOST: is required"),
        ({"DATABASE": ""}, "DATABASE: is required"),
        # improved: such a port was kept as 0
        ({"PORT": ""}, "PORT: must be a port number"),
        ({"PORT": "0"}, "PORT: must be a port number"),
        ({"PORT": "65536"}, "PORT: must be a port number"),
        ({"PORT": "five"}, "PORT: must be a port number"),
        ({"PORT": "٥٤٣٢"}, "PORT: must be a port number"),
        ({"HOST": "a\nb"}, "HOST: must not hold control characters"),
        ({"USER": "a\0b"}, "USER: must not hold control characters"),
        ({"CONFIG_NAME": "my_own_db"}, "CONFIG_NAME: must be one of midaz_onboarding, midaz_tr"),
        ({"CONFIG_NAME": "Plugin_CRM"}, "CONFIG_NAME: must be one of midaz_onboarding, midaz_tr"),
        ({"CONFIG_NAME": ""}, "CONFIG_NAME: must be one of midaz_onboarding, midaz_transaction"),
    ],
)
def test_a_group_that_cannot_be_used_is_skipped_and_says_why(
    changes: dict[str, str], line: str
) -> None:
    found = read(variables(**changes))
    assert found.connections == {}
    (told,) = found.skipped
    assert told.startswith(f"DATASOURCE_A_{line}")
    assert not any(value and value in told for value in (SECRET, "10.0.0.7", "my_own_db", "five"))


def test_groups_are_independent() -> None:
    found = read(
        {
            **variables("A", SSLMODE="require"),
            **variables("B", CONFIG_NAME="midaz_transaction"),
            **variables("C_D", **CRM, SSLMODE="wrong"),
        }
    )
    assert sorted(found.connections) == ["midaz_onboarding", "midaz_transaction"]
    assert found.connections["midaz_onboarding"].tls == TlsSettings(mode="require")
    assert found.connections["midaz_transaction"].tls is None
    assert [line.partition(":")[0] for line in found.skipped] == ["DATASOURCE_C_D_SSLMODE"]


def test_of_two_groups_with_one_name_the_first_counts_whatever_their_order() -> None:
    environment = {**variables("B", HOST="second"), **variables("A", HOST="first")}
    for each in (environment, dict(reversed(environment.items()))):
        found = read(each)
        assert found.connections["midaz_onboarding"].host == "first"
        assert found.skipped == ("DATASOURCE_B_CONFIG_NAME: another group has this name",)
    unusable_first = {**variables("A", PORT="x"), **variables("B", HOST="second")}
    assert read(unusable_first).connections["midaz_onboarding"].host == "second"


def test_options_become_metadata_without_any_decoding() -> None:
    options = "authSource=ops&flag&directConnection=true&a=b=c&x=%20&=y"
    assert read(variables(**CRM, OPTIONS=options)).connections["plugin_crm"].metadata == {
        "authSource": "ops",
        "directConnection": "true",
        "a": "b=c",
        "x": "%20",
    }


def test_secrets_may_lie_in_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "key").write_text("key\n")
    environment = variables(PASSWORD="", SSLMODE="require")
    environment["DATASOURCE_A_PASSWORD_FILE"] = str(tmp_path / "password")
    environment["DATASOURCE_A_SSL_KEY_FILE"] = str(tmp_path / "key")
    connection = read(environment).connections["midaz_onboarding"]
    assert connection.plain_password == SECRET
    assert connection.tls == TlsSettings(mode="require", key="key")
    both = environment | {"DATASOURCE_A_PASSWORD": "x"}
    assert read(both).skipped == (
        "DATASOURCE_A_PASSWORD: set it or DATASOURCE_A_PASSWORD_FILE, not both",
    )
    nowhere = environment | {"DATASOURCE_A_SSL_KEY_FILE": str(tmp_path / "none")}
    assert read(nowhere).skipped == ("DATASOURCE_A_SSL_KEY_FILE: the file cannot be read",)


def test_other_settings_of_sources_are_no_groups() -> None:
    environment = {
        "DATASOURCE_HOST_GUARD": "on",
        "DATASOURCE_CONFIG_NAME": "plugin_crm",
        "DATASOURCE__CONFIG_NAME": "plugin_crm",
        "XDATASOURCE_A_CONFIG_NAME": "plugin_crm",
        "datasource_a_config_name": "plugin_crm",
    }
    assert [group.name for group in source_groups(environment)] == []


def test_no_secret_shows() -> None:
    groups = source_groups(variables(SSLMODE="require", SSL_KEY="canary-key"))
    shown = repr((groups, environment_sources(groups)))
    assert SECRET not in shown
    assert "canary-key" not in shown


@pytest.mark.parametrize(
    ("tenant_id", "config_name", "identifier"),
    [
        ("", "midaz_onboarding", "d23dda0c-5f1a-5d94-a584-ea056a9fa8c1"),
        ("", "midaz_transaction", "1efa2c9e-9d9c-5a4c-b778-d79bceec1f6a"),
        ("", "plugin_crm", "8de55b81-916c-5ec9-bee3-7c05e8f32f29"),
        ("acme-7", "midaz_transaction", "b6153f18-c760-582e-a897-ad0d8eb37a3e"),
        ("acme", "midaz_onboarding", "6555c37d-1c1f-5653-8d51-0adac4d8cd80"),
        ("acme", "plugin_crm", "dc9da466-285c-5964-9275-4a91f8a8d4b2"),
    ],
)
def test_ids_are_the_specs(tenant_id: str, config_name: str, identifier: str) -> None:
    assert internal_source_id(config_name, tenant_id) == UUID(identifier)


async def test_a_name_without_a_group_is_told_by_name() -> None:
    found = read(variables())
    assert (await found.find("midaz_onboarding")).type is SourceType.POSTGRESQL
    with pytest.raises(InternalSourceMissing) as missing:
        await found.find("plugin_crm")
    assert missing.value.message == (
        "internal datasource 'plugin_crm' not configured via environment variables"
    )


def test_equal_settings_give_equal_sources() -> None:
    first, again = read(variables()), read(variables())
    assert first == again
    changed = replace(first.connections["midaz_onboarding"], plain_password="other")
    assert changed != again.connections["midaz_onboarding"]
