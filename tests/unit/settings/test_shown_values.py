"""What is shown of settings holds no secret, whichever of them somebody put it in."""

import base64
import re
from typing import Any

import pytest
from pydantic import SecretStr

from fetcher.log_secrets import LiveSecrets
from fetcher.settings import MASK, Settings, secrets_of, shown_value

CANARY = "canary-of-settings"
TEXTS = [
    name.upper()
    for name, field in Settings.model_fields.items()
    if field.annotation is str and not name.startswith("swagger_")
]
SECRET_WORDS = re.compile(r"SECRET|PASSWORD|_PASS(_|$)|TOKEN|KEY|CREDENTIAL|AUTH|HEADERS")
NO_SECRETS = frozenset(
    {
        *("APP_ENC_KEY_VERSION", "APP_ENC_KEY_PREVIOUS_UNTIL", "OBJECT_STORAGE_KEY_PREFIX"),
        *("PLUGIN_AUTH_ENABLED", "PLUGIN_AUTH_ADDRESS", "PLUGIN_AUTH_JWKS_URL"),
    }
)


def test_every_setting_whose_name_tells_of_a_secret_is_one_or_is_judged_here() -> None:
    """A new one must be a SecretStr, or be named above with a reason to be shown."""
    told = {name.upper() for name in Settings.model_fields if SECRET_WORDS.search(name.upper())}
    secret = {
        name.upper()
        for name, field in Settings.model_fields.items()
        if field.annotation is SecretStr
    }
    assert told - secret == NO_SECRETS
    assert {shown_value(name, SecretStr(CANARY)) for name in secret} == {MASK}
    assert shown_value("MONGO_URI", SecretStr("")) == ""


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "text",
    [
        f"https://me:{CANARY}@host.test:443/path",
        f"https://{CANARY}@host.test",
        f"amqp://me:{CANARY}/more@host.test",
        f"host.test,me:{CANARY}@other.test:9092",
        f"https://host.test/hook?token={CANARY}&a=b",
        f"https://host.test/hook?mail=me@x.test&token={CANARY}",
        f"https://host.test/hook?{CANARY}",
        f"https://host.test/?token=a, b;{CANARY}",
        f"https://host.test/#access_token={CANARY}",
        f"https://host.test/?a=b#{CANARY}",
        f"host.test/hook?token={CANARY}",
        f"see=https://me:{CANARY}@host.test",
        f"://me:{CANARY}@host.test",
    ],
)
def test_credentials_within_an_address_are_masked_in_every_text(name: str, text: str) -> None:
    shown = str(shown_value(name, text))
    assert CANARY not in shown
    assert MASK in shown


WITHIN = (",", ";", " ", "/", ":", "#", "?", "&", "=", "%40", "@", "://", ", ", "@@")


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize(
    "address",
    [
        "http://me:{}@host.test:15672",
        "http://one.test/, http://me:{}@host.test/?mail=a@host.test",
        "one.test:9092,me:{}@host.test:9092,three.test:9092",
    ],
)
def test_a_password_of_any_characters_is_masked_where_it_is_shown_and_in_logs(
    address: str, within: str
) -> None:
    password = f"first-half{within}other-half"
    text = address.format(password)
    for name in TEXTS:
        shown = str(shown_value(name, text))
        assert "half" not in shown
        assert name == "MONGO_PARAMETERS" or f"{MASK}@host.test" in shown
    for given in (
        Settings.model_construct(rabbitmq_health_check_url=text),
        Settings.model_construct(mongo_uri=SecretStr(text)),
    ):
        secrets = LiveSecrets()
        secrets.hold(secrets_of(given))
        assert secrets.masked(f"cannot log in with {password}") == "cannot log in with ***"
        assert secrets.masked("one.test, host.test, three.test") == (
            "one.test, host.test, three.test"
        )


def test_each_of_many_addresses_has_its_own_password() -> None:
    text = "u:canary-1@a.test,v:canary-2@b.test, amqp://w:canary-3@c.test;amqp://x:canary-4@d.test"
    shown = str(shown_value("STREAMING_BROKERS", text))
    assert shown == f"{MASK}@b.test, amqp://{MASK}@c.test;amqp://{MASK}@d.test"
    secrets = LiveSecrets()
    secrets.hold(secrets_of(Settings.model_construct(streaming_brokers=text)))
    assert secrets.masked("canary-1 canary-2 canary-3 canary-4") == "*** *** *** ***"


def test_prose_keeps_its_words() -> None:
    text = "Contact: team@x.test, see https://me:secret@x.test/?a=b or ask us@y.test; R&D #1?"
    assert shown_value("SWAGGER_DESCRIPTION", text) == (
        f"Contact: team@x.test, see https://{MASK}@x.test/?a={MASK} or ask us@y.test; R&D #1?"
    )


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith("_CA_CERT")])
def test_roots_are_shown_but_not_with_a_key_among_them(name: str) -> None:
    roots = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    key = roots.replace("CERTIFICATE", "PRIVATE KEY")
    shown = base64.b64encode(roots.encode()).decode()
    hidden = base64.b64encode(f"{roots}{key}".encode()).decode()
    assert shown_value(name, shown) == shown
    assert shown_value(name, hidden) == MASK
    given: dict[str, Any] = {name.lower(): hidden}
    assert hidden in set(secrets_of(Settings.model_construct(**given)))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", ""),
        ("tls=true&replicaSet=rs0", "tls=true&replicaSet=rs0"),
        (
            "w=majority&tlsCertificateKeyFilePassword=c1",
            f"w=majority&tlsCertificateKeyFilePassword={MASK}",
        ),
        ("authMechanismProperties=AWS_SESSION_TOKEN:c1", f"authMechanismProperties={MASK}"),
        ("PROXYPASSWORD=c1&proxyHost=p", f"PROXYPASSWORD={MASK}&proxyHost=p"),
        ("tls=true&c1", f"tls=true&{MASK}"),
        ("tls=true;proxyPassword=c1", f"tls={MASK}"),
        ("unheardOf=c1", f"unheardOf={MASK}"),
        ("authMechanismProperties=", "authMechanismProperties="),
    ],
)
def test_of_mongodbs_parameters_those_without_a_credential_are_shown(
    given: str, shown: str
) -> None:
    assert shown_value("MONGO_PARAMETERS", given) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER_ADDRESS", "[::1]:4006"),
        ("PLUGIN_AUTH_ADDRESS", "https://auth.test:443/v1"),
        ("SWAGGER_DESCRIPTION", "ask team@x.test"),
        ("STREAMING_BROKERS", "a.test:9092,b.test:9092"),
        ("OBJECT_STORAGE_KEY_PREFIX", "r&d#1"),
        ("STREAMING_BROKERS", "http://a.test:80/x, http://b.test:80"),
        ("DATASOURCE_HOST_ALLOW", "10.0.0.0/8, *.test"),
        ("REDIS_DB", 3),
        ("ENABLE_TELEMETRY", True),
        ("SERVER_PORT", None),
    ],
)
def test_everything_else_is_shown_as_it_is(name: str, value: object) -> None:
    assert shown_value(name, value) == value


def test_what_is_hidden_of_a_text_is_masked_in_logs() -> None:
    settings = Settings(
        mongo_parameters="tls=true&tlsCertificateKeyFilePassword=canary%201&replicaSet=replicas",
        mongo_uri=SecretStr("mongodb://me:canary-2@h/?proxyPassword=canary-3&appName=the-service"),
        plugin_auth_address="https://me:canary-4@auth.test?key=canary-5",
        swagger_description="see https://x.test/?find=database",
    )
    secrets = LiveSecrets()
    secrets.hold(secrets_of(settings))
    secrets.hold(
        secrets_of(
            Settings(
                mongo_parameters="tls=true;proxyPassword=canary-6&appName=database",
                plugin_auth_jwks_url="https://auth.test/#access_token=canary-7",
            )
        )
    )
    assert secrets.masked("canary-6 canary-7") == "*** ***"
    assert secrets.masked("canary%201 canary 1 canary-2 canary-3 canary-4 canary-5") == " ".join(
        ["***"] * 6
    )
    harmless = "replicas the-service database true"
    assert secrets.masked(harmless) == harmless
