"""The process's keys: from the settings, or from the data folder that keeps its own."""

import structlog

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.crypto.keys import KeyRing, MasterKeyError
from fetcher.domain.errors import StartRefused
from fetcher.settings import Settings

log = structlog.get_logger(__name__)


def key_ring(settings: Settings, folder: DataFolder | None) -> KeyRing:
    """Raise StartRefused, with the rule and never with the key."""
    master = settings.app_enc_key.get_secret_value()
    if not master and folder is not None:
        master, is_new = folder.master_key()
        if is_new:
            log.warning("master_key_created", file=str(folder.database.parent / "master.key"))
    try:
        return KeyRing.from_text(
            master,
            version=settings.app_enc_key_version,
            previous=settings.app_enc_key_previous.get_secret_value(),
        )
    except MasterKeyError as refused:
        raise StartRefused([f"decode master encryption key: {refused}"]) from None
