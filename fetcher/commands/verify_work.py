"""Judge one delivery of the work queue (spec worker-and-events 3.3, 7.3 and 9.3)."""

from collections.abc import Callable, Mapping
from typing import Protocol

from fetcher.crypto.signer import MessageVerifier, SignatureOutcome
from fetcher.domain.message_envelope import TENANT_HEADER
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.work_message import WorkMessage, WorkMessageError, parse_work_message
from fetcher.ports import RejectReason, UtcNow


class SignedMessage(Protocol):
    """A delivery, or a dead letter with the route that it had."""

    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, object]: ...
    @property
    def exchange(self) -> str: ...
    @property
    def routing_key(self) -> str: ...


class VerifyWork:
    """The message's time never decides: the claim on the record does (decisions, and 047). So the
    verifier is one for which it does not.

    With tenants the one whose queue it came from must be named by it, before anything else is
    looked at: what was signed for another tenant is nobody's here. Without tenants the header
    decides nothing, but is signed.

    ``saw_legacy`` hears of each message that is taken by its body's signature alone, where the
    verifier allows that.
    """

    def __init__(
        self,
        *,
        verifier: MessageVerifier,
        now: UtcNow,
        tenant: Tenant = NO_TENANT,
        saw_legacy: Callable[[], None] = lambda: None,
    ) -> None:
        self._verifier = verifier
        self._now = now
        self._tenant = tenant.id
        self._saw_legacy = saw_legacy

    def verify(self, message: SignedMessage) -> WorkMessage | RejectReason:
        """What a genuine message asks for, or why it goes to the dead letters."""
        if self._tenant and message.headers.get(TENANT_HEADER) != self._tenant:
            return RejectReason.TENANT_MISMATCH
        outcome = self._verifier.verify(
            message.headers,
            message.body,
            exchange=message.exchange,
            routing_key=message.routing_key,
            now=self._now().timestamp(),
        )
        if outcome is SignatureOutcome.PREVIOUS_KEY_ENDED:
            return RejectReason.PREVIOUS_KEY_ENDED
        if not outcome.is_valid:
            return RejectReason.BAD_SIGNATURE
        if outcome is SignatureOutcome.VALID_LEGACY:
            self._saw_legacy()
        try:
            return parse_work_message(message.body, message.headers)
        except WorkMessageError:
            return RejectReason.MALFORMED
