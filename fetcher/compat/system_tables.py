"""Tables of the databases themselves, which no listing shows (spec engine 17.2).

Judged on the raw name, before normalization. The lists that name schemas also judge the part
before the first dot.
"""

from fetcher.compat.names import (
    MONGODB,
    MYSQL,
    ORACLE,
    POSTGRESQL,
    SQL_SERVER,
    SQLITE,
    upper_case,
)

_MYSQL_SCHEMAS = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
_SQL_SERVER_SCHEMAS = frozenset({"sys", "information_schema"})
_MONGODB_NAMES = frozenset({"admin", "local", "config"})

_ORACLE_PREFIXES = (
    "LOGMNR",
    "REDO_",
    "MVIEW$",
    "AQ$",
    "DEF$",
    "REPCAT$",
    "SQLPLUS_",
)
_ORACLE_TABLES = frozenset({"REDO_LOG", "REDO_DB", "PLAN_TABLE"})
_ORACLE_SCHEMAS = frozenset(
    [
        "SYS",
        "SYSTEM",
        "OUTLN",
        "XDB",
        "MDSYS",
        "CTXSYS",
        "DBSNMP",
        "WMSYS",
        "EXFSYS",
        "ORDSYS",
        "ORDDATA",
        "ORDPLUGINS",
        "SI_INFORMTN_SCHEMA",
        "APEX_PUBLIC_USER",
        "APEX_040000",
        "APEX_030200",
        "FLOWS_FILES",
        "ANONYMOUS",
    ]
)


def is_system_table(name: str, source_type: str) -> bool:
    """Whether the table, as discovered, belongs to the database; never for an unknown type."""
    if source_type == ORACLE:
        return _is_oracle_system(upper_case(name))
    lowered = name.lower()
    schema = lowered.partition(".")[0]
    if source_type == POSTGRESQL:
        return lowered.startswith(("pg_", "information_schema"))
    if source_type == MYSQL:
        return schema in _MYSQL_SCHEMAS
    if source_type == SQL_SERVER:
        return schema in _SQL_SERVER_SCHEMAS or schema.startswith("db_")
    if source_type == MONGODB:
        return lowered.startswith("system.") or lowered in _MONGODB_NAMES
    return source_type == SQLITE and lowered.startswith("sqlite_")


def _is_oracle_system(name: str) -> bool:
    return (
        "$" in name
        or name.startswith(_ORACLE_PREFIXES)
        or name in _ORACLE_TABLES
        or name.partition(".")[0] in _ORACLE_SCHEMAS
    )
