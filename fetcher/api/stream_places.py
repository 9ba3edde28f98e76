"""How many answers without a foreseeable end are sent at a time."""

from fetcher.api.problems import TOO_MANY_STREAMS
from fetcher.domain.errors import FetcherError


class TooManyStreams(FetcherError):
    def __init__(self, message: str) -> None:
        super().__init__("503", "request_failed", message, error_code=TOO_MANY_STREAMS)


class StreamPlaces:
    """A place is taken with a stream's first piece, from where on its ``aclose()`` is certain.

    Nothing has been sent then, so that of many that were let in at once those beyond the limit
    still get their 503.
    """

    def __init__(self, *, at_most: int, refusal: str) -> None:
        self._at_most = at_most
        self._refusal = refusal
        self._taken = 0

    def check(self) -> None:
        """Raise TooManyStreams where none is free."""
        if self._taken >= self._at_most:
            raise TooManyStreams(self._refusal)

    def take(self) -> None:
        """Raise TooManyStreams where none is free."""
        self.check()
        self._taken += 1

    def leave(self) -> None:
        self._taken -= 1
