"""One token for everybody, where no authorization service is asked (``FETCHER_ACCESS_TOKEN``)."""

import hmac
from collections.abc import Mapping
from typing import Final

from fetcher.domain.access import Granted, Permission, Refusal, Refused, Verdict

SUBJECT: Final = "access-token"
"""All who have it are the same to us."""


class LocalToken:
    """Authorizer that lets in whoever has the token, for everything."""

    relays = False

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def judge(
        self,
        token: str | None,
        permission: Permission,  # noqa: ARG002 - the port's signature
        *,
        trace: Mapping[str, str],  # noqa: ARG002 - the port's signature
    ) -> Verdict:
        """The comparison takes as long whatever is right of it."""
        if token is None:
            return Refused(Refusal.MISSING_TOKEN)
        if not hmac.compare_digest(token.encode(), self._token):
            return Refused(Refusal.UNAUTHORIZED)
        return Granted(subject=SUBJECT)
