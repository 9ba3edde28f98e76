"""A tenant with a long queue does not keep another's job waiting (spec configuration 11.8)."""

import psycopg

from tests.e2e.cluster import Api, postgres_connection
from tests.e2e.tenancy import Tenancy
from tests.servers.addresses import SqlAddress

QUEUED = 60


def slow_job(api: Api, number: int) -> str:
    filters = {"sales_db": {"slow": {"id": {"gt": [number]}}}}
    posted = api.post_job({"sales_db": {"slow": ["id"]}}, filters)
    assert posted.status == 202, posted.body
    return str(posted.body["jobId"])


def test_one_job_does_not_wait_for_the_queue_of_another_tenant(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            "CREATE VIEW slow AS SELECT id, pg_sleep(0.3)::text AS slept FROM orders"
            " WHERE id = 9007199254740994"
        )
    tenancy.changes["DATASOURCE_INCLUDE_VIEWS"] = "true"
    many, one = tenancy.add("many"), tenancy.add("one")
    with (
        tenancy.process("manager") as (_, api),
        tenancy.process("worker", RABBITMQ_NUMBERS_OF_WORKERS="2"),
    ):
        full, lonely = api.of(many.tenant_id), api.of(one.tenant_id)
        for own in (full, lonely):
            assert own.connect(postgres_connection(shop)).status == 201
        queued = [slow_job(full, number) for number in range(QUEUED)]
        alone = lonely.wait_for_job(slow_job(lonely, 0))
        assert alone["status"] == "completed", alone
        waiting = [job for job in queued if full.job(job)["status"] == "pending"]
        assert len(waiting) > QUEUED // 2
