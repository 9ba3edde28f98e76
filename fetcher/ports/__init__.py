"""What use cases and actors need from outside.

Rules for every port: a method raises :class:`~fetcher.domain.errors.PortUnavailable` when the
outside is down, refused or slower than the adapter's own deadline, and the named error where one is
given; it honours cancellation and leaves nothing behind when cancelled. One contract suite a port
(``tests/contract``) runs over every implementation. An implementation is bound to one tenant's
resources; no method takes a tenant.
"""

from fetcher.ports.audit import AuditTrail
from fetcher.ports.messages import (
    DeadLetterLevel,
    DeadLetterLevels,
    DeadLetterQueue,
    DeadLetterWindow,
    DeclareTopology,
    Deliveries,
    Delivery,
    MessagePublisher,
    OutgoingMessage,
    RejectReason,
    WorkBacklog,
    WorkConsumer,
)
from fetcher.ports.objects import (
    ObjectStore,
    Upload,
)
from fetcher.ports.operations import (
    ActorState,
    JobStatistics,
    KnownDependency,
    ProbedMinute,
    ProcessFacts,
    QueueDepth,
    QueueDepths,
    TenantState,
    TenantStateName,
)
from fetcher.ports.records import (
    ConnectionBreakers,
    ConnectionRecords,
    DispatchOutbox,
    EventOutbox,
    ExpiredLeases,
    InternalSources,
    JobLeases,
    JobRecords,
    ObjectCleanup,
    RecordStore,
    ReferenceOutbox,
    SealedCredentials,
)
from fetcher.ports.retention import JobRetention
from fetcher.ports.sources import (
    Authorizer,
    ConnectionRecovery,
    ForgetSchemas,
    PasswordCipher,
    Probe,
    ProbeResult,
    ProbeStatus,
    SourceEngines,
    TestLimiter,
    UtcNow,
)
from fetcher.ports.tracing import SPAN_CANCELLED, UNTRACED, Span, SpanKind, SpanValue, Tracer

__all__ = [
    "SPAN_CANCELLED",
    "UNTRACED",
    "ActorState",
    "AuditTrail",
    "Authorizer",
    "ConnectionBreakers",
    "ConnectionRecords",
    "ConnectionRecovery",
    "DeadLetterLevel",
    "DeadLetterLevels",
    "DeadLetterQueue",
    "DeadLetterWindow",
    "DeclareTopology",
    "Deliveries",
    "Delivery",
    "DispatchOutbox",
    "EventOutbox",
    "ExpiredLeases",
    "ForgetSchemas",
    "InternalSources",
    "JobLeases",
    "JobRecords",
    "JobRetention",
    "JobStatistics",
    "KnownDependency",
    "MessagePublisher",
    "ObjectCleanup",
    "ObjectStore",
    "OutgoingMessage",
    "PasswordCipher",
    "Probe",
    "ProbeResult",
    "ProbeStatus",
    "ProbedMinute",
    "ProcessFacts",
    "QueueDepth",
    "QueueDepths",
    "RecordStore",
    "ReferenceOutbox",
    "RejectReason",
    "SealedCredentials",
    "SourceEngines",
    "Span",
    "SpanKind",
    "SpanValue",
    "TenantState",
    "TenantStateName",
    "TestLimiter",
    "Tracer",
    "Upload",
    "UtcNow",
    "WorkBacklog",
    "WorkConsumer",
]
