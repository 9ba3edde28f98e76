"""``docs/schemas`` and ``docs/asyncapi.yaml``, from the types of messages in ``fetcher.domain``."""
