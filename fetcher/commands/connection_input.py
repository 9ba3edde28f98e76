"""Connections as callers send them."""

from dataclasses import dataclass, field

from fetcher.domain.connections import TlsSettings
from fetcher.domain.json_values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsInput:
    """TLS settings as sent; what was left out is None, and means nothing where it is empty."""

    mode: str | None = None
    ca: str | None = field(default=None, repr=False)
    cert: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        """An object without any value means "no TLS settings"."""
        return bool(self.mode or self.ca or self.cert or self.key)

    def settings(self) -> TlsSettings:
        return TlsSettings(
            mode=self.mode or "", ca=self.ca or "", cert=self.cert or "", key=self.key or ""
        )

    def over(self, stored: TlsSettings | None) -> TlsSettings:
        """A mode begins anew; without one the other values are put into what is stored."""
        if self.mode is not None or stored is None:
            return self.settings()
        return TlsSettings(
            mode=stored.mode,
            ca=stored.ca if self.ca is None else self.ca,
            cert=stored.cert if self.cert is None else self.cert,
            key=stored.key if self.key is None else self.key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """A connection as sent; what was left out is empty, 0 or None."""

    config_name: str = ""
    type: str = ""
    host: str = ""
    port: int = 0
    database_name: str = ""
    schema: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    tls: TlsInput | None = None
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionChange:
    """What a patch sets; None is what it leaves as it is.

    ``removes_tls`` takes the TLS settings away; then there is no ``tls``.
    """

    config_name: str | None = None
    type: str | None = None
    host: str | None = None
    port: int | None = None
    database_name: str | None = None
    schema: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: TlsInput | None = None
    removes_tls: bool = False
    metadata: JsonObject | None = None
