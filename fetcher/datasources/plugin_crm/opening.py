"""Documents with sealed fields, opened one by one on their way to JSON."""

from collections.abc import Iterable, Sequence

from fetcher.compat.plugin_crm import DECRYPTION_FAILED
from fetcher.crypto.sealed_fields import FieldCipher
from fetcher.datasources.mongodb.layout import RowWriter
from fetcher.datasources.plugin_crm.sealed_strings import PathTree, with_strings
from fetcher_engine import SourceFailure, Stage


class OpeningWriter:
    """Opens the sealed fields of one logical collection, then lets another writer write.

    It counts the records of all its physical collections, in the order in which they are read.
    """

    def __init__(
        self, inner: RowWriter, cipher: FieldCipher, paths: Iterable[str], *, table: str
    ) -> None:
        self._inner = inner
        self._cipher = cipher
        self._tree = PathTree(paths)
        self._table = table
        self._record = 0

    def rows(self, data: bytes, starts: Sequence[int]) -> list[str]:
        """Raise SourceFailure ``decryption_failed``, with the record's number and the field."""
        opened: list[bytes] = []
        opened_starts: list[int] = []
        at = 0
        bounds = (*starts, len(data))
        for number, start in enumerate(starts, 1):
            self._record += 1
            document = with_strings(data[start : bounds[number]], self._tree, self._open)
            opened.append(document)
            opened_starts.append(at)
            at += len(document)
        return self._inner.rows(b"".join(opened), opened_starts)

    def _open(self, path: str, sealed: bytes) -> bytes:
        plain = self._cipher.open(sealed)
        if plain is None:
            reason = f"{DECRYPTION_FAILED} record_{self._record}"
            raise SourceFailure(Stage.ROWS, reason, table=self._table, column=path)
        return plain
