"""One call of a service that runs, over its HTTP API."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode, urlsplit

from fetcher.domain.errors import PortUnavailable
from fetcher.settings import Settings

NO_FETCHER: Final = "what answers is no Fetcher, or of another version"
_ANY: Final = frozenset({"", "0.0.0.0", "::"})


class ServiceAbsent(PortUnavailable):
    """Nobody listens there."""

    code = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlace:
    scheme: str
    host: str
    port: int
    token: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """``path`` is quoted already; header values are printable ASCII."""

    path: str
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAnswer:
    status: int
    body: bytes = field(repr=False)


def place_of(settings: Settings, url: str | None) -> ServicePlace:
    """Of ``url``, else where a manager with these settings listens. Raise ValueError."""
    token = settings.fetcher_access_token.get_secret_value()
    if url is not None:
        return place_at(url, token=token)
    host, _, port = settings.listen_address.rpartition(":")
    host = host.strip().strip("[]")
    host = "127.0.0.1" if host in _ANY else host
    return ServicePlace(scheme="http", host=host, port=int(port), token=token)


def place_at(url: str, *, token: str) -> ServicePlace:
    """Raise ValueError, with the rule."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be http://host:port or https://host:port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be an address without a path")
    default = 443 if parts.scheme == "https" else 80
    return ServicePlace(
        scheme=parts.scheme, host=parts.hostname, port=parts.port or default, token=token
    )


def call_service(
    place: ServicePlace, call: ServiceCall, *, seconds: float, max_bytes: int
) -> ServiceAnswer:
    """Whatever it answers. Blocking; ``seconds`` bound each wait for the network.

    No redirect is followed: the token is for this place. Raise ServiceAbsent or PortUnavailable.
    """
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.host, place.port, timeout=seconds)
    # Without it some refusals come as plain text, as the reference's do.
    given = {"Accept": "application/json", **call.headers}
    if place.token:
        given["Authorization"] = f"Bearer {place.token}"
    target = f"{call.path}?{urlencode(call.query)}" if call.query else call.path
    failure: PortUnavailable
    try:
        connection.request(call.method, target, headers=given)
        with connection.getresponse() as answer:
            body = answer.read(max_bytes + 1)
            # the library tells of a torn body only where it is asked for all of it
            if len(body) <= max_bytes and answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
        if len(body) <= max_bytes:
            return ServiceAnswer(status=answer.status, body=body)
        failure = PortUnavailable(NO_FETCHER)
    except ConnectionRefusedError:
        failure = ServiceAbsent("nobody listens there")
    except TimeoutError:
        failure = PortUnavailable("the service did not answer in time: timeout")
    except UnicodeError:
        failure = PortUnavailable("the service did not answer: no host can have that name")
    except (OSError, http.client.HTTPException) as error:
        failure = PortUnavailable(f"the service did not answer: {type(error).__name__}")
    finally:
        connection.close()
    raise failure
