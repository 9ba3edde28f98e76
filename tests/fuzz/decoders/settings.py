"""Values of settings."""

import base64

from fetcher.crypto.keys import KeyRing, MasterKeyError, decode_master_key
from fetcher.datasources.pem import pem_text
from fetcher.settings.certificates import ca_pem
from fetcher.settings.mongo_address import AddressInvalid, hosts_of, scheme_of, uses_tls
from tests.fuzz.decoders.decoder import Decoder, text_of
from tests.servers.certificates import Authority
from tests.unit.crypto import vectors


def decoders() -> dict[str, Decoder]:
    pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    return {
        "PEM": Decoder(
            seeds=[pem],
            decode=lambda data: pem_text(text_of(data)),
            refusals=(ValueError,),
        ),
        "roots": Decoder(
            seeds=[base64.b64encode(Authority().ca.encode())],
            decode=lambda data: ca_pem(text_of(data)),
            refusals=(ValueError,),
        ),
        "MongoDB's address": Decoder(
            seeds=[b"mongodb://u:p%40@a.test:27017,b.test/db?tls=true&replicaSet=r"],
            decode=_mongo_address,
            refusals=(AddressInvalid,),
        ),
        "master key": Decoder(
            seeds=[vectors.APP_ENC_KEY.encode()],
            decode=lambda data: decode_master_key(text_of(data)),
            refusals=(MasterKeyError,),
        ),
        "former keys": Decoder(
            seeds=[b"1=" + base64.b64encode(bytes(40))],
            decode=lambda data: KeyRing.from_text(
                vectors.APP_ENC_KEY, version="2", previous=text_of(data)
            ),
            refusals=(MasterKeyError,),
        ),
    }


def _mongo_address(data: bytes) -> None:
    text = text_of(data)
    scheme_of(text)
    uses_tls(text)
    hosts_of(text)
