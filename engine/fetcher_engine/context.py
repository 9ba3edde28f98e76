"""On whose behalf an operation runs (spec 4.1)."""

import re
from dataclasses import dataclass, replace
from typing import Self

from fetcher_engine.errors import EngineError, ErrorCategory

_TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TenantContext:
    """The tenant, the only dimension of isolation, and a request id that serves tracing alone.

    A value built by hand is not checked here: every operation checks it again.
    """

    tenant_id: str
    request_id: str = ""

    @classmethod
    def new(cls, tenant_id: str) -> Self:
        """Trim and validate; raise ``validation`` with ``tenant id is invalid``."""
        given: object = tenant_id
        trimmed = given.strip() if isinstance(given, str) else ""
        if not _TENANT_ID.fullmatch(trimmed):
            raise EngineError(ErrorCategory.VALIDATION, "tenant id is invalid")
        return cls(trimmed)

    def with_request_id(self, request_id: str) -> Self:
        """A copy with the trimmed request id; raise ``validation`` for what is no text."""
        given: object = request_id
        if not isinstance(given, str):
            raise EngineError(ErrorCategory.VALIDATION, "request id is invalid")
        return replace(self, request_id=given.strip())

    @property
    def is_zero(self) -> bool:
        """Whether nothing was set at all."""
        return not self.tenant_id and not self.request_id

    @property
    def is_multi_tenant(self) -> bool:
        """Whether a tenant was named."""
        return bool(self.tenant_id)


def require_tenant(tenant: object) -> None:
    """Raise ``validation`` unless the id is well formed, as it stands: nothing is trimmed here."""
    parts = (tenant.tenant_id, tenant.request_id) if isinstance(tenant, TenantContext) else ("", "")
    if not all(map(_is_text, parts)) or not _TENANT_ID.fullmatch(parts[0]):
        raise EngineError(ErrorCategory.VALIDATION, "tenant scope is required")


def _is_text(part: object) -> bool:
    return isinstance(part, str)
