"""Messages of MongoDB's wire protocol: cut out of a stream, read, and answered."""

import struct
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import bson
import trio
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

_OP_REPLY: Final = 1
_OP_QUERY: Final = 2004
_OP_MSG: Final = 2013
_HEADER: Final = struct.Struct("<4i")
_OPTIONS: Final = CodecOptions(document_class=RawBSONDocument)


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it travels."""

    data: bytes

    @property
    def request_id(self) -> int:
        return int(_HEADER.unpack_from(self.data)[1])

    @property
    def _kind(self) -> int:
        return int(_HEADER.unpack_from(self.data)[3])

    @property
    def _body_at(self) -> int:
        if self._kind == _OP_QUERY:
            # flags, the collection's name, numbers to skip and to return
            return self.data.index(b"\0", 20) + 9
        # flags, then the section of kind 0: clients and servers send it first
        return 21 if self._kind == _OP_MSG else 36

    @property
    def body(self) -> dict[str, Any]:
        """The command, or its answer. What lies deeper stays as it is."""
        size = struct.unpack_from("<i", self.data, self._body_at)[0]
        raw = bson.decode(self.data[self._body_at : self._body_at + size], _OPTIONS)
        return dict(raw)

    @property
    def sections(self) -> dict[str, list[dict[str, Any]]]:
        """Documents that a command has beside its body: of an insert, an update, a delete."""
        size = struct.unpack_from("<i", self.data, self._body_at)[0]
        at = self._body_at + size
        found: dict[str, list[dict[str, Any]]] = {}
        while self._kind == _OP_MSG and at < len(self.data):
            (size,) = struct.unpack_from("<i", self.data, at + 1)
            named_until = self.data.index(b"\0", at + 5)
            documents = bson.decode_all(self.data[named_until + 1 : at + 1 + size])
            found[self.data[at + 5 : named_until].decode()] = documents
            at += 1 + size
        return found

    def with_body(self, body: Mapping[str, Any]) -> "Message":
        """The same with another body."""
        size = struct.unpack_from("<i", self.data, self._body_at)[0]
        rest = self.data[self._body_at + size :]
        inner = self.data[_HEADER.size : self._body_at] + bson.encode(body) + rest
        _, request_id, response_to, kind = _HEADER.unpack_from(self.data)
        head = _HEADER.pack(_HEADER.size + len(inner), request_id, response_to, kind)
        return Message(head + inner)

    def answered(self, body: Mapping[str, Any]) -> "Message":
        """The answer to it."""
        if self._kind == _OP_QUERY:
            head, kind = struct.pack("<iqii", 8, 0, 0, 1), _OP_REPLY
        else:
            head, kind = struct.pack("<iB", 0, 0), _OP_MSG
        inner = head + bson.encode(body)
        return Message(_HEADER.pack(_HEADER.size + len(inner), 0, self.request_id, kind) + inner)


async def messages(stream: trio.abc.ReceiveStream) -> AsyncGenerator[Message, None]:
    """Whole ones, until the stream's end."""
    pending = b""
    async for chunk in stream:
        pending += chunk
        while len(pending) >= _HEADER.size:
            (size,) = struct.unpack_from("<i", pending)
            if len(pending) < size:
                break
            message, pending = pending[:size], pending[size:]
            yield Message(message)
