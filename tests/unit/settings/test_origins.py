"""``CORS_ALLOWED_ORIGINS``."""

import pytest

from fetcher.settings import Role, SettingsRefused, load_settings


def test_unset_means_any_origin() -> None:
    assert load_settings({}, Role.ALL).allowed_origins == ("*",)


def test_origins_are_listed_with_commas() -> None:
    listed = "https://app.acme.test, http://localhost:3000,https://[::1]:8443"
    settings = load_settings({"CORS_ALLOWED_ORIGINS": listed}, Role.ALL)
    assert settings.allowed_origins == (
        "https://app.acme.test",
        "http://localhost:3000",
        "https://[::1]:8443",
    )


@pytest.mark.parametrize(
    "wrong", ["app.acme.test", "https://app.acme.test/", "https://*.acme.test", "null", "a b"]
)
def test_what_no_browser_sends_as_its_origin_stops_the_start(wrong: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        load_settings({"CORS_ALLOWED_ORIGINS": f"https://a.test,{wrong}"}, Role.ALL)
    assert refused.value.problems == [
        "CORS_ALLOWED_ORIGINS: must be * or origins like https://app.example.com, with commas"
    ]
