"""What is sealed: results, passwords, fields."""

from typing import Final

from fetcher.consumer import ResultRejected, derive_keys, open_result
from fetcher.crypto.credentials import CredentialError, decrypt_text, encrypt_text
from fetcher.crypto.sealed_fields import FieldCipher
from tests.fuzz.decoders.decoder import Decoder, text_of
from tests.unit.crypto import vectors

_KEYS: Final = derive_keys(vectors.APP_ENC_KEY)


def decoders() -> dict[str, Decoder]:
    return {
        "sealed result": Decoder(
            seeds=[vectors.RESULT_OBJECT],
            decode=_result,
            refusals=(ResultRejected,),
        ),
        "sealed password": Decoder(
            seeds=[encrypt_text(vectors.MASTER, "secret", nonce=bytes(12)).encode()],
            decode=lambda data: decrypt_text(vectors.MASTER, text_of(data)),
            refusals=(CredentialError,),
        ),
        "sealed field": Decoder(
            seeds=[encrypt_text(vectors.MASTER, "Ana", nonce=bytes(12)).encode()],
            decode=FieldCipher(vectors.MASTER).open,
        ),
    }


def _result(data: bytes) -> None:
    open_result(
        data,
        storage_key=_KEYS.storage,
        hmac_key=_KEYS.external_hmac,
        expected_hmac=vectors.RESULT_HMAC,
        expected_size=len(vectors.RESULT_PLAINTEXT),
    ).close()
