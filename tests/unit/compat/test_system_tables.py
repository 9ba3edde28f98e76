"""System tables: spec engine 17.2, table 21.14."""

import pytest

from fetcher.compat import is_system_table

SYSTEM = [
    ("POSTGRESQL", "pg_temp_1"),
    ("POSTGRESQL", "PG_CLASS"),
    ("POSTGRESQL", "pg_catalog.pg_class"),
    ("POSTGRESQL", "information_schema.tables"),
    ("MYSQL", "sys"),
    ("MYSQL", "mysql"),
    ("MYSQL", "information_schema"),
    ("MYSQL", "performance_schema"),
    ("MYSQL", "sys.host_summary"),
    ("ORACLE", "Sys"),
    ("ORACLE", "MVIEW$X"),
    ("ORACLE", "v$session"),
    ("ORACLE", "logmnr_x"),
    ("ORACLE", "REDO_LOG"),
    ("ORACLE", "REDO_DB"),
    ("ORACLE", "PLAN_TABLE"),
    ("ORACLE", "SQLPLUS_PRODUCT_PROFILE"),
    ("ORACLE", "SYS.USER_TABLES"),
    ("ORACLE", "apex_040000"),
    ("ORACLE", "ANONYMOUS"),
    ("SQL_SERVER", "db_owner"),
    ("SQL_SERVER", "db_backup.logs"),
    ("SQL_SERVER", "sys"),
    ("SQL_SERVER", "INFORMATION_SCHEMA"),
    ("SQL_SERVER", "sys.objects"),
    ("MONGODB", "system.users"),
    ("MONGODB", "admin"),
    ("MONGODB", "local"),
    ("MONGODB", "config"),
    ("SQLITE", "sqlite_master"),
    ("SQLITE", "SQLITE_stat1"),
]

KEPT = [
    ("POSTGRESQL", "users"),
    ("POSTGRESQL", "acct.pg_payments"),
    ("POSTGRESQL", "sys"),
    ("MYSQL", "system"),
    ("MYSQL", "app.sys"),
    ("ORACLE", "EMPLOYEES"),
    ("ORACLE", "HR.SYSTEM"),
    ("ORACLE", "SYSTEMS"),
    ("SQL_SERVER", "dbo.users"),
    ("SQL_SERVER", "sales.orders"),
    ("SQL_SERVER", "dbo.db_log"),
    ("MONGODB", "users"),
    ("MONGODB", "systems"),
    ("MONGODB", "config.items"),
    ("SQLITE", "sqlite"),
    ("SQLITE", "pg_class"),
    ("unknown", "pg_class"),
    ("unknown", "sys"),
]


@pytest.mark.parametrize(("source_type", "name"), SYSTEM)
def test_tables_of_the_database_itself_are_known(source_type: str, name: str) -> None:
    assert is_system_table(name, source_type)


@pytest.mark.parametrize(("source_type", "name"), KEPT)
def test_tables_of_users_are_kept(source_type: str, name: str) -> None:
    assert not is_system_table(name, source_type)
