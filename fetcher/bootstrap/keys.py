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


def existing_key_ring(settings: Settings) -> KeyRing:
    """For commands that open or verify what a process has sealed or signed: no key is made.

    Raise StartRefused as :func:`key_ring`, and where there is no key.
    """
    if settings.app_enc_key.get_secret_value() or not settings.needs_data_folder:
        return key_ring(settings, None)
    folder = DataFolder(settings.fetcher_data_dir)
    if not folder.holds_master_key():
        where = settings.fetcher_data_dir
        raise StartRefused([f"APP_ENC_KEY: not set, and {where} holds no key of its own"])
    return key_ring(settings, folder)
