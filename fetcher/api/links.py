"""Where an answer leads: the operations that take the id it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_CONNECTION: Final = (
    "get_connection",
    "assign_connection",
    "patch_connection",
    "delete_connection",
    "test_connection",
    "get_connection_schema",
)
_JOB: Final = (
    "get_job",
    "cancel_job",
    "rerun_job",
    "get_job_result",
    "preview_job_result",
    "delete_job_result",
)


@dataclass(frozen=True, slots=True)
class Links:
    """``pointer`` says where in the answer's body the id is (RFC 6901)."""

    pointer: str
    operations: Sequence[str]

    def described(self) -> dict[str, object]:
        return {
            name: {"operationId": name, "parameters": {"id": f"$response.body#{self.pointer}"}}
            for name in self.operations
        }


LINKS: Final[Mapping[tuple[str, int], Links]] = MappingProxyType(
    {
        ("create_connection", 201): Links("/id", _CONNECTION),
        ("create_job", 202): Links("/jobId", _JOB),
        ("create_job", 200): Links("/jobId", _JOB),
        ("rerun_job", 202): Links("/jobId", _JOB),
    }
)
"""By operation and status."""
