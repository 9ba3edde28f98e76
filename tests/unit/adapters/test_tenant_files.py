"""Certificates of a tenant's servers: read in bounds, and told of without paths."""

import os
import threading
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from fetcher.adapters import tenant_files
from fetcher.adapters.tenant_files import tenant_file, tenant_trust_roots
from fetcher.domain.tenants import TenantNotConfigured
from tests.servers.certificates import Authority
from tests.servers.waiting import eventually


async def test_certificates_are_read_with_their_comments(tmp_path: Path) -> None:
    ca = Authority().ca
    path = tmp_path / "ca.pem"
    path.write_text(f"# Prüfstelle\n{ca}")
    assert ca in await tenant_trust_roots(str(path), what="tlsCAFile")
    assert await tenant_trust_roots("", what="tlsCAFile") == ""


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "too large", "no path", "not ours"])
async def test_what_cannot_be_read_is_told_without_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "canary"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "too large":
            monkeypatch.setattr(tenant_files, "MAX_BYTES", 10)
            path.write_text("x" * 11)
        case "no path":
            path = Path("/canary\0/x")
        case "not ours":
            path = Path("/dev/null/canary")
    with pytest.raises(TenantNotConfigured) as caught:
        await tenant_file(str(path), what="tlsCAFile")
    assert str(caught.value) == (
        "tenant service not configured: the file of tlsCAFile cannot be read"
    )
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("text", ["", "canary", "-----BEGIN CERTIFICATE-----\ncanary\n"])
async def test_a_file_without_certificates_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(text)
    with pytest.raises(TenantNotConfigured) as caught:
        await tenant_trust_roots(str(path), what="tlsCAFile")
    assert str(caught.value) == (
        "tenant service not configured: the file of tlsCAFile holds no certificates"
    )
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_a_mount_that_hangs_keeps_nobody_from_files_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, hung = threading.Event(), list[str]()
    read = tenant_files._read

    def read_or_hang(path: str) -> str:
        if "hanging" in path:
            hung.append(path)
            answer.wait(10)
        return read(path)

    monkeypatch.setattr(tenant_files, "_read", read_or_hang)
    path = tmp_path / "ca.pem"
    path.write_text("text")
    try:
        with trio.fail_after(4):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    hanging = str(tmp_path / "hanging" / f"{number}.pem")
                    nursery.start_soon(partial(tenant_file, hanging, what="tlsCAFile"))
                await trio.testing.wait_all_tasks_blocked()
                await eventually(lambda: len(hung) >= 2, deadline_seconds=2)
                nursery.cancel_scope.cancel()
            assert await tenant_file(str(path), what="tlsCAFile") == "text"
        assert len(hung) == 2
    finally:
        answer.set()
