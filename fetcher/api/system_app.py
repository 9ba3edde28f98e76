"""The worker's own small server: health, readiness, metrics and version on ``HEALTH_PORT``."""

from quart_trio import QuartTrio

from fetcher.api.application import assembled
from fetcher.api.services import HttpSettings, SystemServices
from fetcher.api.system_routes import system_routes


def create_system_app(services: SystemServices) -> QuartTrio:
    """The system routes alone; everything else is 404."""
    return assembled(
        system_routes(services), metrics=services.http_metrics, settings=HttpSettings()
    )
