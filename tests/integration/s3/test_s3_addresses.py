"""How the store is addressed: the bucket in the path or in the host, and TLS by the scheme."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from tests.integration.s3.recording_store import Recorder, recorder
from tests.servers.certificates import Authority

KEY = "external-data/k.json"


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(lambda _: None):
        yield


def a_location(endpoint: str, *, path_style: bool = True) -> S3Location:
    return S3Location(
        bucket="results",
        endpoint=endpoint,
        access_key_id="AK",
        secret_key="SK",
        path_style=path_style,
    )


@pytest.mark.parametrize(
    ("endpoint", "path_style", "address"),
    [
        ("https://store.test", True, "https://store.test/results/external-data/k.json?"),
        ("https://store.test", False, "https://results.store.test/external-data/k.json?"),
        ("http://store.test:9000", True, "http://store.test:9000/results/external-data/k.json?"),
        ("", True, "https://s3.amazonaws.com/results/external-data/k.json?"),
        ("", False, "https://results.s3.amazonaws.com/external-data/k.json?"),
    ],
)
async def test_the_bucket_stands_in_the_path_or_in_the_host(
    room: None, endpoint: str, path_style: bool, address: str
) -> None:
    async with open_s3(a_location(endpoint, path_style=path_style)) as store:
        signed = await store.temporary_address(KEY, seconds=60)
    assert signed is not None
    assert signed.startswith(address)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    identity = authority.certificate("127.0.0.1")
    (tmp_path / "cert.pem").write_text(identity.cert)
    (tmp_path / "key.pem").write_text(identity.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


def https(server: Recorder) -> S3Location:
    return a_location(f"https://127.0.0.1:{server.server_address[1]}")


async def test_a_certificate_of_an_unknown_authority_is_refused_and_nothing_is_sent(
    room: None, tls: ssl.SSLContext
) -> None:
    with recorder(tls) as server:
        async with open_s3(https(server)) as store:
            probed = await store.probe().check()
            async with store.upload(KEY) as upload:
                await upload.write(b"sealed")
                with pytest.raises(PortUnavailable, match="s3 upload failed: TLS failed"):
                    await upload.complete()
    assert (probed.status, probed.error, probed.tls) == ("down", "TLS failed", True)
    assert (server.puts, server.heads) == ([], 0)


async def test_an_authority_of_ones_own_is_trusted_by_its_file(
    room: None,
    tls: ssl.SSLContext,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text(authority.ca)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    with recorder(tls) as server:
        async with open_s3(https(server)) as store:
            probed = await store.probe().check()
            async with store.upload(KEY) as upload:
                await upload.write(b"sealed")
                assert await upload.complete() == 6
    assert (probed.status, probed.error, probed.tls) == ("up", None, True)
    assert [body for _, body, _ in server.puts] == [b"sealed"]
