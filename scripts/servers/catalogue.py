"""The servers that tests need: where they usually are, how to ask them, start them, name them."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.servers import launches, probes, testserver_venv

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = launches.LOOPBACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One kind of server.

    ``variable`` names the setting by which a user brings a server of their own; ``settings`` says
    what tests are told about one on this port; ``find`` gives the way to start one, or ``None``
    where nothing is installed; ``package`` is Debian's, ``remedy`` what to do where there is none.
    """

    name: str
    variable: str
    usual_port: int | None
    admits: Callable[[str, int], None]
    settings: Callable[[int], Mapping[str, str]]
    find: Callable[[], launches.Launch | None]
    start_seconds: float
    package: str | None = None
    remedy: str = ""


def find_mongo() -> launches.Launch:
    """Its virtual environment is made, where needed, while the others already start."""

    def launch(place: launches.Place, started: launches.Started) -> None:
        command = testserver_venv.ensure(
            ROOT / ".venv-testserver", ROOT / "requirements" / "testserver.txt"
        )
        launches.mongo_launch(command)(place, started)

    return launch


def find_s3() -> launches.Launch | None:
    """moto's server of the environment that runs us."""
    command = Path(sys.prefix) / "bin" / "moto_server"
    return launches.s3_launch(command) if command.exists() else None


SERVICES = (
    # the slowest to start comes first: they start side by side
    Service(
        name="RabbitMQ",
        variable="FETCHER_TEST_AMQP_URL",
        usual_port=5672,
        admits=lambda host, port: probes.amqp(host, port, "guest", "guest"),
        settings=lambda port: {"FETCHER_TEST_AMQP_URL": f"amqp://guest:guest@{LOOPBACK}:{port}/"},
        find=launches.find_rabbitmq,
        start_seconds=120,
        package="rabbitmq-server",
    ),
    Service(
        name="PostgreSQL",
        variable="FETCHER_TEST_POSTGRES_DSN",
        usual_port=5432,
        admits=lambda host, port: probes.postgres(host, port, "postgres"),
        settings=lambda port: {
            "FETCHER_TEST_POSTGRES_DSN": f"postgresql://postgres@{LOOPBACK}:{port}/postgres"
        },
        find=launches.find_postgres,
        start_seconds=60,
        package="postgresql",
    ),
    Service(
        name="MariaDB",
        variable="FETCHER_TEST_MARIADB_HOST",
        usual_port=3306,
        admits=lambda host, port: probes.mariadb(host, port, "root"),
        settings=lambda port: {
            "FETCHER_TEST_MARIADB_HOST": LOOPBACK,
            "FETCHER_TEST_MARIADB_PORT": str(port),
            "FETCHER_TEST_MARIADB_USER": "root",
            "FETCHER_TEST_MARIADB_PASSWORD": "",
        },
        find=launches.find_mariadb,
        start_seconds=60,
        package="mariadb-server",
    ),
    Service(
        name="Redis",
        variable="FETCHER_TEST_REDIS_URL",
        usual_port=6379,
        admits=probes.redis,
        settings=lambda port: {"FETCHER_TEST_REDIS_URL": f"redis://{LOOPBACK}:{port}/0"},
        find=launches.find_redis,
        start_seconds=30,
        package="redis-server",
    ),
    Service(
        name="MongoDB",
        variable="FETCHER_TEST_MONGO_URI",
        usual_port=None,  # one that runs here holds somebody's data and stays alone
        admits=probes.mongo,
        settings=lambda port: {"FETCHER_TEST_MONGO_URI": f"mongodb://{LOOPBACK}:{port}/"},
        find=find_mongo,
        start_seconds=60,
    ),
    Service(
        name="S3",
        variable="FETCHER_TEST_S3_ENDPOINT",
        usual_port=None,
        admits=probes.s3,
        settings=lambda port: {"FETCHER_TEST_S3_ENDPOINT": f"http://{LOOPBACK}:{port}"},
        find=find_s3,
        start_seconds=60,
        remedy="run 'scripts/setup.sh dev', which installs moto",
    ),
)
