"""Virtual hosts of the broker, each with a user that sees nothing but it: a tenant's place.

AMQP makes none, so the broker's own command does. One call of it takes half a second, whatever it
is told to do: an expression does all at once. Names travel as bytes: no shell can misread them.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from scripts.servers.launches import executable
from tests.servers.addresses import SERVICES_ENV, ServerMissingError

COMMAND_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vhost:
    """``name`` as it is on the broker; ``url`` has every part of it percent-encoded."""

    name: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"amqp://{credentials}@{self.host}:{self.port}/{quote(self.name, safe='')}"


def place_of(amqp_url: str, *, name: str, user: str, password: str) -> Vhost:
    parts = urlsplit(amqp_url)
    return Vhost(
        name=name,
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 5672,
        user=user,
        password=password,
    )


def control_command(settings: dict[str, str], port: int, folder: Path = SERVICES_ENV.parent) -> str:
    """The broker's ``rabbitmqctl``: the one that is named, that of a broker which ``make services``
    has started, or the system's.

    Raises:
        ServerMissingError: there is none.
    """
    ours = next(folder.glob(f"fetcher-services-*/**/rabbitmqctl-{port}"), None)
    named = settings.get("FETCHER_TEST_RABBITMQCTL")
    found = named or (str(ours) if ours else executable("rabbitmqctl"))
    if found is None:
        message = "no rabbitmqctl here: FETCHER_TEST_RABBITMQCTL names the broker's"
        raise ServerMissingError(message)
    return found


def make(command: str, vhosts: Sequence[Vhost]) -> None:
    """Make them with their users, who may do everything there and nothing elsewhere."""
    _evaluate(command, [_making(vhost) for vhost in vhosts])


def remove(command: str, vhosts: Sequence[Vhost]) -> None:
    """Remove them, whoever is connected, with their users and all that lies there."""
    _evaluate(command, [_removing(vhost) for vhost in vhosts])


def _making(vhost: Vhost) -> str:
    name, user, password, test = map(_binary, (vhost.name, vhost.user, vhost.password, "test"))
    everything = _binary(".*")
    return (
        f"rabbit_vhost:add({name}, {test}),"
        f" rabbit_auth_backend_internal:add_user({user}, {password}, {test}),"
        f" rabbit_auth_backend_internal:set_permissions({user}, {name},"
        f" {everything}, {everything}, {everything}, {test})"
    )


def _removing(vhost: Vhost) -> str:
    name, user, test = map(_binary, (vhost.name, vhost.user, "test"))
    return (
        f"rabbit_vhost:delete({name}, {test}),"
        f" rabbit_auth_backend_internal:delete_user({user}, {test})"
    )


def _binary(text: str) -> str:
    return f"<<{','.join(map(str, text.encode()))}>>"


def _evaluate(command: str, expressions: Sequence[str]) -> None:
    done = subprocess.run(
        [command, "-q", "eval", ", ".join([*expressions, "ok."])],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    if done.returncode or done.stdout.strip() != "ok":
        message = f"{command}: {done.stdout.strip()} {done.stderr.strip()}"[:2000]
        raise ServerMissingError(message)
