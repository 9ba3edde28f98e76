"""Secrets for the stacks of config/compose and config/kind: made once, kept in an untracked file.

``python3 scripts/stack_secrets.py config/compose/.env`` writes them with mode 0600; a file that is
there stays as it is, for volumes hold what was made with it. Needs no package.
"""

import base64
import hashlib
import os
import secrets
import sys
from pathlib import Path


def made() -> dict[str, str]:
    password = _text()
    return {
        "APP_ENC_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "FETCHER_ACCESS_TOKEN": _text(),
        "MONGO_PASSWORD": _text(),
        "MONGO_REPLICA_KEY": base64.b64encode(secrets.token_bytes(96)).decode(),
        "RABBITMQ_DEFAULT_PASS": password,
        "RABBITMQ_PASSWORD_HASH": rabbitmq_hash(password, secrets.token_bytes(4)),
        "REDIS_PASSWORD": _text(),
        "OBJECT_STORAGE_SECRET_KEY": _text(),
        "GRAFANA_ADMIN_PASSWORD": _text(),
    }


def rabbitmq_hash(password: str, salt: bytes) -> str:
    """As RabbitMQ stores it: base64 of a salt of four bytes and SHA-256 of salt and password."""
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def write_once(path: Path) -> bool:
    """Whether the file was written; it is never replaced."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.writelines(f"{name}={value}\n" for name, value in made().items())
    return True


def _text() -> str:
    """32 random bytes in hex: nothing that a shell, an address or YAML would read otherwise."""
    return secrets.token_hex(32)


if __name__ == "__main__":
    written = write_once(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {'made' if written else 'kept'}")
