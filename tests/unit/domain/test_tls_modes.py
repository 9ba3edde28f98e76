"""Rows of spec datasources 19.2."""

import pytest

from fetcher.domain.connections import SourceType
from fetcher.domain.tls_modes import TLS_MODES, tls_mode_problem

NETWORKED = [each for each in SourceType if each is not SourceType.SQLITE]


@pytest.mark.parametrize("source_type", NETWORKED)
def test_every_mode_of_a_type_is_its_own(source_type: SourceType) -> None:
    assert all(tls_mode_problem(source_type, mode) is None for mode in TLS_MODES[source_type])


@pytest.mark.parametrize("source_type", NETWORKED)
@pytest.mark.parametrize(
    "mode",
    [
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
        "ｔrue",  # noqa: RUF001 - full-width
        "truе",  # noqa: RUF001 - Cyrillic
        "t" * 10_000,
    ],
)
def test_modes_are_exact(source_type: SourceType, mode: str) -> None:
    problem = tls_mode_problem(source_type, mode)
    assert problem is not None
    assert len(problem) < 250


@pytest.mark.parametrize(
    ("mode", "types"),
    [
        ("verify-ca", {"POSTGRESQL"}),
        ("verify-full", {"POSTGRESQL"}),
        ("require", {"POSTGRESQL"}),
        ("preferred", {"MYSQL"}),
        ("skip-verify", {"MYSQL", "ORACLE"}),
        ("disable", {"POSTGRESQL", "ORACLE", "SQL_SERVER", "MONGODB"}),
        ("strict", {"SQL_SERVER"}),
    ],
)
def test_each_type_has_modes_of_its_own(mode: str, types: set[str]) -> None:
    assert {each.value for each in NETWORKED if tls_mode_problem(each, mode) is None} == types


def test_the_right_spelling_is_suggested_and_the_modes_are_listed() -> None:
    modes = '(valid modes for MYSQL: "false", "preferred", "skip-verify", "true")'
    assert tls_mode_problem(SourceType.MYSQL, "Preferred") == (
        f'not an SSL mode of MYSQL, did you mean "preferred"? {modes}'
    )
    assert tls_mode_problem(SourceType.MYSQL, "wrong") == f"not an SSL mode of MYSQL {modes}"
