import pytest
from yarl import URL

from fetcher.adapters.amqp.address import BrokerAddress

HARD_PASSWORD = "p@ss:/w?rd#%2F +ü"


def an_address(**changes: object) -> BrokerAddress:
    values: dict[str, object] = {
        "scheme": "amqp",
        "host": "broker.example",
        "port": 5672,
        "user": "plugin",
        "password": "secret",
    }
    return BrokerAddress(**(values | changes))  # type: ignore[arg-type]  # a builder's plain dict


def test_user_and_password_are_percent_encoded_and_come_out_as_they_were() -> None:
    url = URL(an_address(user="us/er@x", password=HARD_PASSWORD).url())
    assert url.user == "us/er@x"
    assert url.password == HARD_PASSWORD
    assert url.host == "broker.example"
    assert url.port == 5672


def test_a_space_in_the_password_is_not_a_plus() -> None:
    assert "a%20b" in an_address(password="a b").url()


@pytest.mark.parametrize(
    ("vhost", "path"), [("/", "/"), ("tenant-1", "/tenant-1"), ("a/b", "/a%2Fb")]
)
def test_the_vhost_is_the_path_and_the_default_one_is_none(vhost: str, path: str) -> None:
    assert an_address(vhost=vhost).url().endswith(f":5672{path}")


def test_an_ipv6_host_stands_in_brackets() -> None:
    assert URL(an_address(host="::1").url()).host == "::1"


def test_the_scheme_alone_decides_about_tls() -> None:
    assert an_address(scheme="amqps").tls
    assert not an_address(scheme="amqp").tls


def test_the_password_is_not_in_the_repr() -> None:
    assert "secret" not in repr(an_address())
