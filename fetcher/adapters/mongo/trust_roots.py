"""Trust roots as pymongo wants them: in a file."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fetcher.domain.errors import StartRefused


@contextmanager
def trust_roots(ca_pem: str) -> Iterator[dict[str, str | bool]]:
    """The client's options, good while the context is open; none without roots.

    Raise StartRefused where no temporary folder can be written.
    """
    if not ca_pem:
        yield {}
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="fetcher-mongo-")
    except OSError:
        raise StartRefused(["MONGO_TLS_CA_CERT: there is no temporary folder for it"]) from None
    with folder as place:
        path = Path(place) / "ca.pem"
        try:
            path.write_text(ca_pem, encoding="ascii")
        except OSError:
            raise StartRefused(
                ["MONGO_TLS_CA_CERT: its temporary file cannot be written"]
            ) from None
        yield {"tls": True, "tlsCAFile": str(path)}
