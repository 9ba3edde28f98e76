"""The rules of extraction: plan, limits, stream and document. Standard library only."""

from fetcher_engine.batches import Batch, EncodedBatch, RowBatch, StreamRequest
from fetcher_engine.concurrency import (
    Concurrency,
    DeadlineExceeded,
    Handoff,
    HandoffClosed,
    SequentialConcurrency,
)
from fetcher_engine.connection import (
    ConnectionDescriptor,
    ConnectionInput,
    ConnectionListParams,
    ConnectionPage,
    ConnectionPatch,
    ConnectionTestResult,
    ProtectedCredential,
)
from fetcher_engine.connections import ConnectionDirectory, ConnectionsById
from fetcher_engine.context import TenantContext
from fetcher_engine.encoding import NotEncodable, RowEncoder, encode_value
from fetcher_engine.errors import (
    EngineError,
    ErrorCategory,
    SourceFailure,
    Stage,
    is_valid_category,
)
from fetcher_engine.extraction import ExtractionPlan, ExtractionRequest, PlanStep
from fetcher_engine.facade import Engine
from fetcher_engine.limits import Limits
from fetcher_engine.port_check import check_port
from fetcher_engine.ports import (
    ActiveExecutionChecker,
    BatchStream,
    CancelSignal,
    ConnectionDirectoryStore,
    ConnectionIdStore,
    ConnectionStore,
    Connector,
    ConnectorFactory,
    ConnectorRegistry,
    CredentialProtector,
    ExecutionStore,
    Observability,
    SchemaCache,
)
from fetcher_engine.results import (
    DirectResult,
    ExecutionState,
    ExecutionStatus,
    ExtractionResult,
    ExtractionSummary,
    ProtectionOwner,
    ResultIntegrity,
    ResultProtection,
)
from fetcher_engine.runner import Write
from fetcher_engine.schema import (
    ColumnSnapshot,
    DatasourceMapping,
    FailureType,
    SchemaSnapshot,
    SchemaValidationRequest,
    TableMapping,
    TableSnapshot,
    ValidationFailure,
    ValidationReport,
)
from fetcher_engine.secret import REDACTED, Secret
from fetcher_engine.step_reading import Progress

__all__ = [
    "REDACTED",
    "ActiveExecutionChecker",
    "Batch",
    "BatchStream",
    "CancelSignal",
    "ColumnSnapshot",
    "Concurrency",
    "ConnectionDescriptor",
    "ConnectionDirectory",
    "ConnectionDirectoryStore",
    "ConnectionIdStore",
    "ConnectionInput",
    "ConnectionListParams",
    "ConnectionPage",
    "ConnectionPatch",
    "ConnectionStore",
    "ConnectionTestResult",
    "ConnectionsById",
    "Connector",
    "ConnectorFactory",
    "ConnectorRegistry",
    "CredentialProtector",
    "DatasourceMapping",
    "DeadlineExceeded",
    "DirectResult",
    "EncodedBatch",
    "Engine",
    "EngineError",
    "ErrorCategory",
    "ExecutionState",
    "ExecutionStatus",
    "ExecutionStore",
    "ExtractionPlan",
    "ExtractionRequest",
    "ExtractionResult",
    "ExtractionSummary",
    "FailureType",
    "Handoff",
    "HandoffClosed",
    "Limits",
    "NotEncodable",
    "Observability",
    "PlanStep",
    "Progress",
    "ProtectedCredential",
    "ProtectionOwner",
    "ResultIntegrity",
    "ResultProtection",
    "RowBatch",
    "RowEncoder",
    "SchemaCache",
    "SchemaSnapshot",
    "SchemaValidationRequest",
    "Secret",
    "SequentialConcurrency",
    "SourceFailure",
    "Stage",
    "StreamRequest",
    "TableMapping",
    "TableSnapshot",
    "TenantContext",
    "ValidationFailure",
    "ValidationReport",
    "Write",
    "check_port",
    "encode_value",
    "is_valid_category",
]
