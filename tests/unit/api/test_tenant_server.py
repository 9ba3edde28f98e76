"""Tenants behind the real server: what becomes of connections."""

import trio

from fetcher.domain.json_text import parse
from fetcher.domain.tenants import TenantSuspended
from tests.unit.api.harness import CONNECTIONS, JOBS
from tests.unit.api.serving import serving
from tests.unit.api.tenant_harness import bearer, tenants_api

OF_ACME = f"Authorization: {bearer('acme-7')['Authorization']}"
OF_BETA = f"Authorization: {bearer('beta-2')['Authorization']}"
UNKNOWN = f"{JOBS}/0197ca00-1111-7222-8333-444455556666"


async def test_connection_outlives_refusals_and_serves_whichever_tenant_comes() -> None:
    api = tenants_api("acme-7", "beta-2")
    api.gate.tenants["beta-2"] = TenantSuspended("suspended")
    async with serving(api.app) as server, server.connected() as client:
        told = []
        for line in (OF_BETA, OF_ACME, "X-Nothing: 1", OF_ACME):
            await client.request("GET", UNKNOWN, b"", line)
            status, _, body = await client.answer()
            told.append((status, parse(body)["code"]))  # type: ignore[call-overload,index] # an object
    assert told == [
        (403, "0131"),
        (404, "FET-1001"),
        (401, "MISSING_TOKEN"),
        (404, "FET-1001"),
    ]


async def test_stream_of_a_tenant_that_is_cut_off_is_closed_short_of_its_end() -> None:
    api = tenants_api("acme-7", "beta-2")
    async with (
        serving(api.app) as server,
        server.connected() as client,
        server.connected() as other,
    ):
        for each, line in ((client, OF_ACME), (other, OF_BETA)):
            await each.request("GET", f"{JOBS}/events", b"", line)
            await each.until(b"retry: 1000\n\n")
        api.cut("acme-7")
        rest = bytearray()
        with trio.fail_after(10):
            while piece := await client.stream.receive_some(4096):
                rest += piece
        assert b"0\r\n\r\n" not in rest
        assert api.gate.inside == ["beta-2"]
        async with server.connected() as third:
            await third.request("GET", "/version")
            assert (await third.answer())[0] == 200


async def test_request_that_waits_when_its_tenant_is_cut_off_is_answered() -> None:
    started = trio.Event()

    class Slow:
        async def take(self, key: str) -> float:
            started.set()
            await trio.sleep_forever()
            raise AssertionError

    api = tenants_api("acme-7", limiter=Slow())
    path = f"{CONNECTIONS}/0197ca00-1111-7222-8333-444455556666/test"
    async with serving(api.app) as server, server.connected() as client:
        await client.request("POST", path, b"{}", OF_ACME)
        await started.wait()
        api.cut("acme-7")
        status, headers, body = await client.answer()
        assert (status, headers["retry-after"]) == (503, "5")
        assert parse(body)["code"] == "SERVICE_UNAVAILABLE"  # type: ignore[call-overload,index] # an object
        await client.request("GET", "/version")
        assert (await client.answer())[0] == 200
