"""The test vectors of spec worker-and-events 10.3: computed twice, independently."""

from fetcher.crypto.keys import KeyRing

APP_ENC_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
MASTER = bytes(range(32))

JOB_ID = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
WORK_QUEUE = "fetcher.extract-external-data.queue"
WORK_TIME = 1773480413
WORK_BODY = (
    b'{"createdAt":"2026-03-14T09:26:53.5Z","jobId":"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",'
    b'"mappedFields":{"sales_db":{"orders":["id","total"]}},"metadata":{"source":"acme-reports"}}'
)
WORK_SIGNATURE = "368db1490d9e49b182c8e36f9cf0ed191b18acb47f0d86f7be33cc2bcbbcc6b0"
WORK_LEGACY_SIGNATURE = "6a0d7c3f430aacb99c12c3d932c2a5cc5763163507018f2c8c67d196f92ac735"

RESULT_PLAINTEXT = b"""{
  "sales_db": {
    "orders": [
      {
        "id": 1,
        "total": "19.90"
      }
    ]
  }
}"""
RESULT_NONCE = bytes(range(12))
RESULT_HMAC = "f686d3b72ab12c2598803e164ed669d9fec014c086d4b05dd833523444633782"
RESULT_TAG = "a23332d1954ce21837edde7cbd802a84"
RESULT_OBJECT = (
    b"AAECAwQFBgcICQoL1EWSknYaVOx/N7UoXMyZhDTADhPNzHv21K9R3L0hwPCqTkD3QMizu2t+Ad+vRJ4rrVaCUtMn"
    b"PkcnsYT5vaX4DWnFSQHnAePwO0RMgA127fZcf5jG7bkDCY40AiNYbmjwV0ejESrbe6IzMtGVTOIYN+3efL2AKoQ="
)

EVENT_TIME = 1773480415
EVENTS_EXCHANGE = "fetcher.job.events"
COMPLETED_BODY = (
    '{"jobId":"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",'
    '"metadata":{"correlationId":"c-42","source":"acme-reports"},"status":"completed",'
    '"result":{"path":"external-data/0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b.json",'
    '"sizeBytes":103,"rowCount":1,"format":"json",'
    f'"hmac":"{RESULT_HMAC}",'
    f'"integrity":{{"algorithm":"HMAC-SHA256","signature":"{RESULT_HMAC}"}},'
    '"protection":{"encrypted":true,"mode":"adapter-managed","appliedBy":"adapter"}},'
    '"executionTimeMs":812,"completedAt":"2026-03-14T09:26:54.312Z"}'
).encode()
COMPLETED_SIGNATURE = "98d6d50ad426df7aa873602ad3be7fe2c00776c159ae8e35c968c340b9a941b5"
FAILED_BODY = (
    b'{"jobId":"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",'
    b'"metadata":{"error":{"message":"engine extraction: connect failed: dial tcp [redacted] '
    b'i/o timeout"},"source":"acme-reports"},"status":"failed"}'
)
FAILED_SIGNATURE = "ed2a471fc6efe090d833c359e6e99c8730284d4b4085dce21a80cfcb2c4e9d53"


def ring() -> KeyRing:
    return KeyRing.from_text(APP_ENC_KEY)
