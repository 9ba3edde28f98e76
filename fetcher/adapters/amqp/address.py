"""Where the broker is and who we are there."""

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """``scheme`` is ``amqp`` or ``amqps``; the scheme alone decides about TLS (spec worker 1.2)."""

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str = "/"
    ca_pem: str = field(default="", repr=False)
    """The only trust roots; empty where the system's count."""

    @property
    def tls(self) -> bool:
        return self.scheme == "amqps"

    def url(self) -> str:
        """The address with credentials: for the driver, never for a log or an error."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = "" if self.vhost == "/" else quote(self.vhost, safe="")
        return f"{self.scheme}://{credentials}@{host}:{self.port}/{path}"
