"""Key pairs, published and used to sign tokens, for tests."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return b64(value.to_bytes((value.bit_length() + 7) // 8))


@dataclass(frozen=True)
class Signing:
    """``jwk`` is what is published, without a ``kid``."""

    algorithm: str
    jwk: dict[str, Any]
    sign: Callable[[bytes], bytes]

    def published(self, kid: str | None = None, **changed: Any) -> dict[str, Any]:
        return {**self.jwk, **({} if kid is None else {"kid": kid}), **changed}

    def token(self, claims: object, **header: Any) -> str:
        head = {"alg": self.algorithm, **header}
        signed = ".".join(b64(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{b64(self.sign(signed.encode()))}"


def an_rsa_key(bits: int = 2048) -> Signing:
    key = rsa.generate_private_key(65537, bits)
    public = key.public_key().public_numbers()
    return Signing(
        "RS256",
        {"kty": "RSA", "n": number(public.n), "e": number(public.e)},
        lambda signed: key.sign(signed, padding.PKCS1v15(), SHA256()),
    )


def an_ec_key() -> Signing:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_numbers()

    def sign(signed: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    x, y = b64(public.x.to_bytes(32)), b64(public.y.to_bytes(32))
    return Signing("ES256", {"kty": "EC", "crv": "P-256", "x": x, "y": y}, sign)


def an_ed_key() -> Signing:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Signing("EdDSA", {"kty": "OKP", "crv": "Ed25519", "x": b64(public)}, key.sign)


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()
