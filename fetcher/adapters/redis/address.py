"""Where Redis is, and how it is reached."""

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """``ca_pem`` are the only trust roots where they are given; else the system's are."""

    host: str
    port: int = 6379
    user: str = ""
    password: str = field(default="", repr=False)
    database: int = 0
    tls: bool = False
    ca_pem: str = ""

    def tls_context(self) -> ssl.SSLContext:
        """Verifies the certificate and its name, TLS 1.2 or later."""
        context = ssl.create_default_context(cadata=self.ca_pem or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context
