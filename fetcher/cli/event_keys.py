"""Keys for `fetcher verify-event` where only the master key is known."""

from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.cli.event_verification import EventKeys
from fetcher.domain.errors import StartRefused
from fetcher.settings import Settings, SettingsRefused


def keys_of_master(settings: Settings) -> EventKeys:
    """Raise SettingsRefused where there is none: a new key would verify nothing."""
    try:
        ring = existing_key_ring(settings)
    except StartRefused as refused:
        raise SettingsRefused(list(refused.problems)) from None
    now = utc_now()
    keys = EventKeys(valid=[])
    for each in ring:
        has_ended = ring.has_ended(each.version, now=now)
        (keys.ended if has_ended else keys.valid).append(each.external_hmac)
    return keys
