"""A small fake of SQL Server: TDS 7.4 with canned answers, for the real driver's code.

It is ours, made from the protocol's description (MS-TDS): what passes here was not verified against
a server.
"""

from tests.servers.tds.server import Request, TdsServer, tds_server
from tests.servers.tds.tokens import Answer, Column, ServerError

__all__ = ["Answer", "Column", "Request", "ServerError", "TdsServer", "tds_server"]
