"""What the record of a connection must be, however it came about (spec rest-api 7.3, step 5)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fetcher.commands import connection_rules as rules
from fetcher.commands.connection_refusals import DOMAIN, refuse_invalid, refuse_missing
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.json_values import JsonObject
from fetcher.domain.tls_modes import VERIFYING_TLS_MODES, tls_mode_problem

_PRINTABLE = frozenset({"database_name", "username"})


@dataclass(frozen=True, slots=True)
class _Fault:
    """A field, what is wrong with it, and the value that is."""

    name: str
    problem: str
    value: object = field(default=None, repr=False)


def check_record(
    connection: Connection, *, password: str, before: Connection | None = None
) -> None:
    """Raise ``FET-0402`` for what is missing, else ``FET-0001`` for what is invalid.

    ``password`` is the plain one where one was given. Of a record that is changed, only the faults
    that ``before`` did not have are refused: what is stored may have been written under the wider
    rules of the reference, and a TLS key is stored encrypted, which is no PEM text.
    """
    refuse_missing(dict(_missing(connection)), entity_type=DOMAIN)
    known = list(_invalid(before)) if before is not None else []
    faults = [*_invalid(connection), *_unstorable("password", password)]
    new = {fault.name: fault.problem for fault in faults if fault not in known}
    refuse_invalid(new, entity_type=DOMAIN)


def _missing(connection: Connection) -> Iterator[tuple[str, str]]:
    if not rules.CONFIG_NAME.fullmatch(connection.config_name):
        yield "config_name", rules.CONFIG_NAME_CHARACTERS
    required: dict[str, object] = {"database_name": connection.database_name}
    if connection.type is not SourceType.SQLITE:
        required = {
            "port": connection.port in rules.PORTS,
            "host": connection.host,
            **required,
            "username": connection.username,
            "password_encrypted": connection.password_encrypted,
        }
    for name, value in required.items():
        if not value:
            yield name, "is required"
    if connection.tls is not None:
        if not connection.tls.mode:
            yield "ssl.mode", "is required"
        # a mode of another type is refused as such, not for what it would need there
        is_mode = tls_mode_problem(connection.type, connection.tls.mode) is None
        if is_mode and connection.tls.mode in VERIFYING_TLS_MODES and not connection.tls.ca:
            yield "ssl.ca", "is required by a mode that verifies"


def _invalid(connection: Connection) -> Iterator[_Fault]:
    name, database = connection.config_name, connection.database_name
    if len(name.encode()) not in rules.CONFIG_NAME_BYTES:
        yield _Fault("config_name", rules.CONFIG_NAME_RULE, name)
    yield from _unstorable("database_name", database)
    yield from _unstorable("username", connection.username)
    yield from _unstorable("schema", connection.schema or "")
    yield from _invalid_tls(connection)
    if connection.type is SourceType.SQLITE and not rules.is_source_path(database):
        yield _Fault("database_name", "must be a relative path without '..'", database)
    if connection.type is SourceType.ORACLE:
        yield from _invalid_oracle_service(connection.metadata)
    for place, problem in (
        ("metadata.invalidText", rules.invalid_text_problem(connection.metadata)),
        ("metadata", rules.metadata_problem(connection.metadata)),
    ):
        if problem is not None:
            yield _Fault(place, problem, connection.metadata)


def _unstorable(name: str, text: str) -> Iterator[_Fault]:
    most = rules.MAX_PASSWORD_CHARACTERS if name == "password" else rules.MAX_NAME_CHARACTERS
    if len(text) > most:
        yield _Fault(name, f"must have at most {most} characters", text)
    elif name in _PRINTABLE and rules.CONTROL.search(text):
        yield _Fault(name, "must not hold control characters", text)
    elif "\0" in text:
        # No wire protocol of the databases carries it: it would cut the value short.
        yield _Fault(name, "must not hold a NUL character", text)


def _invalid_tls(connection: Connection) -> Iterator[_Fault]:
    tls = connection.tls
    if tls is None:
        return
    if problem := tls_mode_problem(connection.type, tls.mode):
        yield _Fault("ssl.mode", f"FET-0413 - {problem}", tls.mode)
    for name, text in {"ca": tls.ca, "cert": tls.cert, "key": tls.key}.items():
        if len(text.encode()) > rules.MAX_PEM_BYTES:
            yield _Fault(f"ssl.{name}", f"must have at most {rules.MAX_PEM_BYTES} bytes", text)
        elif text and not rules.is_pem(text, certificate=name != "key"):
            yield _Fault(f"ssl.{name}", "is not PEM text", text)
    if tls.cert and not tls.key:
        yield _Fault("ssl.key", "is required beside ssl.cert", tls.cert)
    if tls.key and not tls.cert:
        yield _Fault("ssl.cert", "is required beside ssl.key", tls.key)


def _invalid_oracle_service(metadata: JsonObject) -> Iterator[_Fault]:
    names = {name: metadata.get(name) for name in ("serviceName", "sid")}
    given = {name: text for name, text in names.items() if isinstance(text, str) and text.strip()}
    if not given:
        yield _Fault("metadata.serviceName", "ORACLE needs a service name (or metadata.sid)")
    for name, text in given.items():
        if rules.CONTROL.search(text):
            yield _Fault(f"metadata.{name}", "must not hold control characters", text)
        elif rules.ORACLE_UNSAFE.search(text.strip()):
            problem = "must not hold blanks, quotes, commas, '\\', '=', '(' or ')'"
            yield _Fault(f"metadata.{name}", problem, text)
