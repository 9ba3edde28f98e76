"""What each TLS mode verifies (spec datasources 3.2, 19.2)."""

import base64
import ssl

import pytest

from fetcher.datasources.mysql.tls import mode_of, tls_context
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure
from tests.servers.certificates import authority


def context_of(tls: TlsSettings | None) -> tuple[ssl.VerifyMode, bool, int] | None:
    """What is verified: the chain, the name; how many authorities are trusted."""
    context = tls_context(tls)
    if context is None:
        return None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    return context.verify_mode, context.check_hostname, len(context.get_ca_certs())


def refused(tls: TlsSettings) -> tuple[str, str]:
    with pytest.raises(SourceFailure) as caught:
        tls_context(tls)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value.stage, caught.value.reason


def test_modes() -> None:
    ca = authority().ca
    assert context_of(None) is None
    assert context_of(TlsSettings(mode="", ca=ca)) is None
    assert context_of(TlsSettings(mode="false", ca=ca)) is None
    assert context_of(TlsSettings(mode="true", ca=ca)) == (ssl.CERT_REQUIRED, True, 1)
    assert context_of(TlsSettings(mode="skip-verify", ca=ca)) == (ssl.CERT_NONE, False, 0)
    assert context_of(TlsSettings(mode="preferred", ca=ca)) == (ssl.CERT_NONE, False, 0)


def test_without_an_authority_the_systems_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: loaded.append(1))
    found = context_of(TlsSettings(mode="true", ca=""))
    assert found is not None
    assert found[:2] == (ssl.CERT_REQUIRED, True)
    assert loaded == [1]


@pytest.mark.parametrize(
    "mode",
    [
        "True",
        "SKIP-VERIFY",
        "Preferred",
        "disable",
        "require",
        "verify-ca",
        "verify-full",
        "true;x=1",
        "true&host=h",
        "true\0",
        "true\n",
        " true",
        "true ",
        "../x",
        "t" * 10_000,
    ],
)
def test_modes_of_others_are_refused(mode: str) -> None:
    assert refused(TlsSettings(mode=mode)) == ("tls", "tls")
    with pytest.raises(SourceFailure):
        mode_of(TlsSettings(mode=mode))


def test_identity_comes_from_memory_as_text_or_base64() -> None:
    signer = authority()
    identity = signer.certificate("client", client=True)
    for packed in (False, True):
        texts = [signer.ca, identity.cert, identity.key]
        if packed:
            texts = [base64.b64encode(text.encode()).decode() for text in texts]
        ca, cert, key = texts
        for mode in ("true", "skip-verify", "preferred"):
            assert tls_context(TlsSettings(mode=mode, ca=ca, cert=cert, key=key)) is not None


def test_material_that_cannot_be_used_is_refused_and_not_told() -> None:
    signer, other = authority(), authority()
    one, two = signer.certificate("one", client=True), other.certificate("two", client=True)
    wrong = [
        {"ca": "no certificate"},
        {"ca": "-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----"},
        {"ca": one.key},
        {"cert": one.cert, "key": two.key},
        {"cert": one.cert},
        {"key": one.key},
        {"cert": "canary", "key": one.key},
    ]
    for texts in wrong:
        settings = TlsSettings(mode="true", **{"ca": signer.ca, **texts})
        assert refused(settings) == ("tls", "tls")
