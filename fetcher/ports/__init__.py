"""What use cases and actors need from outside.

Rules for every port: a method raises :class:`~fetcher.domain.errors.PortUnavailable` when the
outside is down, refused or slower than the adapter's own deadline, and the named error where one is
given; it honours cancellation and leaves nothing behind when cancelled. One contract suite a port
(``tests/contract``) runs over every implementation. An implementation is bound to one tenant's
resources; no method takes a tenant.
"""

from fetcher.ports.messages import (
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
)
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

__all__ = [
    "Authorizer",
    "ConnectionBreakers",
    "ConnectionRecords",
    "ConnectionRecovery",
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
    "MessagePublisher",
    "ObjectCleanup",
    "ObjectStore",
    "OutgoingMessage",
    "PasswordCipher",
    "Probe",
    "ProbeResult",
    "ProbeStatus",
    "RecordStore",
    "ReferenceOutbox",
    "RejectReason",
    "SourceEngines",
    "TestLimiter",
    "Upload",
    "UtcNow",
    "WorkBacklog",
    "WorkConsumer",
]
