"""The process's keys: from the settings, or from the data folder that keeps its own."""

import structlog

from fetcher.adapters.local.data_folder import MASTER_KEY_FILE, DataFolder
from fetcher.bootstrap.known_secrets import keys_as_texts
from fetcher.crypto.keys import KeyRing, MasterKeyError
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.errors import StartRefused
from fetcher.log_secrets import live_secrets
from fetcher.settings import Settings

log = structlog.get_logger(__name__)


def key_ring(settings: Settings, folder: DataFolder | None) -> KeyRing:
    """The logs mask all of it from then on.

    Raise StartRefused, with the rule and never with the key.
    """
    master = settings.app_enc_key.get_secret_value()
    if not master and folder is not None:
        master, is_new = folder.master_key()
        live_secrets.hold([master])
        if is_new:
            log.warning("master_key_created", file=str(folder.path / MASTER_KEY_FILE))
    elif folder is not None:
        _warn_of_ignored(folder, master)
    try:
        ring = KeyRing.from_text(
            master,
            version=settings.app_enc_key_version,
            previous=settings.app_enc_key_previous.get_secret_value(),
            previous_until=settings.app_enc_key_previous_until,
        )
    except MasterKeyError as refused:
        raise StartRefused([f"decode master encryption key: {refused}"]) from None
    live_secrets.hold(keys_as_texts(ring))
    return ring


def _warn_of_ignored(folder: DataFolder, master: str) -> None:
    """What was sealed under the folder's own key is not opened by another."""
    if folder.holds_master_key() and folder.master_key()[0].strip() != master.strip():
        log.warning(
            "master_key_ignored",
            file=str(folder.path / MASTER_KEY_FILE),
            meaning="APP_ENC_KEY is another key: it does not open what that one has sealed",
        )


def work_verifier(ring: KeyRing, *, allow_legacy: bool = False) -> MessageVerifier:
    """Of work messages, which managers sign: by clocks that may differ from ours (decision 047)."""
    until = ring.previous_until
    return MessageVerifier(
        [keys.internal_hmac for keys in ring],
        previous_until=until.timestamp() if until is not None else None,
        allow_legacy=allow_legacy,
        time_decides=False,
    )


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
