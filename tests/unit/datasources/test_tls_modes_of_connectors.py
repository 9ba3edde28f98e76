"""Every connector takes the modes of its type, an empty one, and nothing else (datasources 3.1)."""

from collections.abc import Callable, Mapping

import pytest

from fetcher.datasources.mongodb.tls import tls_options
from fetcher.datasources.mysql.tls import tls_context as mysql_context
from fetcher.datasources.oracle.tls import tls_context as oracle_context
from fetcher.datasources.postgresql.tls import tls_keywords
from fetcher.datasources.sqlserver.tls import tls_plan
from fetcher.datasources.targets import Target
from fetcher.domain.connections import SourceType, TlsSettings
from fetcher.domain.tls_modes import TLS_MODES
from fetcher_engine import SourceFailure


def postgresql(tls: TlsSettings) -> None:
    with tls_keywords(tls) as keywords:
        assert keywords["sslmode"] == (tls.mode or "disable")


def mongodb(tls: TlsSettings) -> None:
    with tls_options(tls) as options:
        assert options.get("tls", False) is (tls.mode not in ("", "disable", "false"))


def sqlserver(tls: TlsSettings) -> None:
    tls_plan(Target(host="h", port=1, database="d", user="u", password="p", tls=tls))


CONNECTORS: Mapping[SourceType, Callable[[TlsSettings], object]] = {
    SourceType.POSTGRESQL: postgresql,
    SourceType.MYSQL: mysql_context,
    SourceType.ORACLE: lambda tls: oracle_context(tls, "db.acme.test"),
    SourceType.SQL_SERVER: sqlserver,
    SourceType.MONGODB: mongodb,
}

ODD = (
    "REQUIRE",
    "True",
    "SKIP-VERIFY",
    "true;x=1",
    "true&host=h",
    "true\0",
    "true\n",
    " true",
    "true ",
    "../x",
    "\uff54rue",
    "tru\u0435",
    "t" * 10_000,
)


@pytest.mark.parametrize("source_type", CONNECTORS)
def test_modes_of_the_type_alone_are_taken(source_type: SourceType) -> None:
    every = {"", *ODD}.union(*TLS_MODES.values())
    refused = {}
    for mode in every:
        try:
            CONNECTORS[source_type](TlsSettings(mode=mode))
        except SourceFailure as failure:
            refused[mode] = str(failure)
    # the driver does not speak it: refused in its own words, and never weakened
    expected = {"strict": "session: strict_unsupported"} if source_type == "SQL_SERVER" else {}
    others = every - {"", *TLS_MODES[source_type]}
    assert refused == expected | dict.fromkeys(others, "tls: tls")
