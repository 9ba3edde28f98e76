"""Bodies of the system routes (spec configuration 5 and 6), and of every failure."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel

from fetcher.api.models.connections import Answer, Timestamp
from fetcher.ports import ProbeResult, ProbeStatus


class HealthBody(Answer):
    # in this order: the whole body is the Wire's
    reason: str | None = None
    status: Literal["healthy", "unhealthy"]

    @classmethod
    def of(cls, *, self_probe_passed: bool) -> Self:
        if self_probe_passed:
            return cls(status="healthy")
        return cls(status="unhealthy", reason="self-probe failed")


class CheckBody(Answer):
    model_config = ConfigDict(alias_generator=None)

    status: str
    latency_ms: int | None = None
    tls: bool | None = None
    error: str | None = None
    reason: str | None = None
    breaker_state: str | None = None

    @classmethod
    def of(cls, result: ProbeResult) -> Self:
        return cls(
            status=str(result.status),
            latency_ms=result.latency_ms or None,
            tls=result.tls,
            error=result.error or None,
            reason=result.reason or None,
            breaker_state=result.breaker_state or None,
        )


class ReadinessBody(Answer):
    model_config = ConfigDict(alias_generator=None)

    status: Literal["healthy", "unhealthy"]
    checks: dict[str, CheckBody]
    version: str
    deployment_mode: str


class TenantReadinessBody(Answer):
    """What the tenant route refuses with (spec configuration 7): no problem body, by the Wire."""

    model_config = ConfigDict(alias_generator=None)

    error: str
    tenant_id: str | None = None


class TenantReadyBody(ReadinessBody):
    tenant_id: str


class TenantUnreadyBody(Answer):
    """Either what the tenant lacks, or why it was not looked at (``error``)."""

    model_config = ConfigDict(alias_generator=None)

    error: str | None = None
    status: Literal["unhealthy"] | None = None
    checks: dict[str, CheckBody] | None = None
    version: str | None = None
    deployment_mode: str | None = None
    tenant_id: str | None = None


class VersionBody(Answer):
    version: str
    request_date: Timestamp


class ProblemBody(BaseModel):
    """What every failure looks like. ``code`` is a number where the Wire has one."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    code: Annotated[str | int, WithJsonSchema({"type": ["string", "integer"]})]
    title: str
    message: str
    error_code: str
    entity_type: str | None = None
    fields: dict[str, str] | None = None
    source: str | None = None
    stage: str | None = None
    reason: str | None = None


class RelayedBody(BaseModel):
    """What the authorization service says of its own accord."""

    model_config = ConfigDict(alias_generator=to_camel)

    code: str
    error_code: str
    title: str | None = None
    message: str | None = None
    entity_type: str | None = None


DRAINING = {
    "draining": ProbeResult(status=ProbeStatus.DOWN, reason="graceful drain in progress"),
}
