"""Public keys and signatures of JSON Web Tokens (RFC 7515, 7517, 7518, 8037).

RS256, ES256 and EdDSA (Ed25519). An algorithm belongs to its key, never to what a token says of
itself: so neither ``none`` nor a shared secret ever verifies anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from fetcher.domain.access_tokens import base64url
from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.json_values import JsonObject, JsonValue

MAX_KEYS: Final = 32
RSA_BITS: Final = (2048, 8192)
_P256_BYTES: Final = 32

Check = Callable[[bytes, bytes], None]
"""Of a signature and what was signed; raises InvalidSignature."""


class KeySetUnreadable(Exception):
    """It is no set of keys."""


class _KeyUnusable(ValueError):
    """It is published, but not one that we verify with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyingKey:
    kid: str | None
    algorithm: str
    check: Check

    def verifies(self, signature: bytes, signed: bytes) -> bool:
        try:
            self.check(signature, signed)
        except InvalidSignature:
            return False
        return True


def read_keys(body: bytes) -> Sequence[VerifyingKey]:
    """The keys that can verify; others are left out. Raise KeySetUnreadable."""
    document: JsonValue = None
    try:
        document = parse(body)
    except JsonTextError:
        document = None
    keys = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise KeySetUnreadable
    read = [_key(each) for each in keys if isinstance(each, Mapping)]
    return [key for key in read if key is not None]


def _key(jwk: JsonObject) -> VerifyingKey | None:
    family, curve = jwk.get("kty"), jwk.get("crv")
    if not (isinstance(family, str) and isinstance(curve, str | None)):
        return None
    reader = _READERS.get((family, curve))
    if reader is None or jwk.get("use", "sig") != "sig":
        return None
    algorithm, read = reader
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    kid = jwk.get("kid")
    if jwk.get("alg", algorithm) != algorithm or not isinstance(kid, str | None):
        return None
    try:
        return VerifyingKey(kid=kid, algorithm=algorithm, check=read(jwk))
    except (ValueError, UnsupportedAlgorithm):
        return None


def _rsa(jwk: JsonObject) -> Check:
    modulus, exponent = _number(jwk, "n"), _number(jwk, "e")
    smallest, largest = RSA_BITS
    if not smallest <= modulus.bit_length() <= largest or exponent.bit_length() > 32:
        raise _KeyUnusable("the size of the key is not taken")
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    return lambda signature, signed: key.verify(signature, signed, padding.PKCS1v15(), SHA256())


def _p256(jwk: JsonObject) -> Check:
    numbers = ec.EllipticCurvePublicNumbers(_number(jwk, "x"), _number(jwk, "y"), ec.SECP256R1())
    key = numbers.public_key()

    def check(signature: bytes, signed: bytes) -> None:
        if len(signature) != 2 * _P256_BYTES:
            raise InvalidSignature
        r, s = signature[:_P256_BYTES], signature[_P256_BYTES:]
        der = encode_dss_signature(int.from_bytes(r), int.from_bytes(s))
        key.verify(der, signed, ec.ECDSA(SHA256()))

    return check


def _ed25519(jwk: JsonObject) -> Check:
    return Ed25519PublicKey.from_public_bytes(_bytes(jwk, "x")).verify


def _number(jwk: JsonObject, name: str) -> int:
    return int.from_bytes(_bytes(jwk, name))


def _bytes(jwk: JsonObject, name: str) -> bytes:
    text = jwk.get(name)
    if not isinstance(text, str):
        raise _KeyUnusable(f"{name} is missing")
    return base64url(text)


_READERS: Final[Mapping[tuple[str, str | None], tuple[str, Callable[[JsonObject], Check]]]] = {
    ("RSA", None): ("RS256", _rsa),
    ("EC", "P-256"): ("ES256", _p256),
    ("OKP", "Ed25519"): ("EdDSA", _ed25519),
}
