"""Whatever is sent to change or to validate, the answer is one of ours: spec rest-api 17.7."""

from hypothesis import example, given
from hypothesis import strategies as st

from fetcher.domain.json_text import dumps
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import CONNECTIONS, a_body, a_connection, an_api
from tests.unit.api.patching import ID, an_api_with_one, kept, patch
from tests.unit.api.test_http_properties import JSON, MAPPED

JSON_BODY = [(b"content-type", b"application/json")]


@given(body=st.binary(max_size=200) | JSON.map(lambda value: dumps(value).encode()))
@example(body=b'{"password":"\\ud800"}')
@example(body=b'{"ssl":{"\\ud800":1}}')
@example(body=b'{"metadata":{"a":1e999}}')
async def test_any_body_of_patch_is_answered_without_a_500(body: bytes) -> None:
    api = await an_api_with_one()
    scope = a_scope("PATCH", f"{CONNECTIONS}/{ID}".encode(), headers=JSON_BODY)
    talk, _ = await answer_of(api.app, scope, [body])
    assert talk.status in (200, 400, 409)


@given(
    changed=st.dictionaries(
        st.sampled_from(sorted([*a_body(), "ssl", "metadata", "schema"])), JSON, max_size=3
    ),
    password=st.text(max_size=20),
)
async def test_patch_changes_what_it_says_or_nothing_and_tells_no_password(
    changed: dict[str, object], password: str
) -> None:
    api = await an_api_with_one()
    before = await kept(api)
    answered = await patch(api, changed | {"password": f"canary{password}"})
    assert answered.status in (200, 400, 409)
    assert b"canary" not in answered.raw
    after = await kept(api)
    assert (after != before) == (answered.status == 200)
    assert (after.id, after.product_name, after.created_at) == (
        before.id,
        before.product_name,
        before.created_at,
    )


@given(mapped=MAPPED | JSON)
async def test_any_question_is_answered_without_a_500(mapped: object) -> None:
    api = an_api()
    await api.records.connections.insert(a_connection())
    body = {"mappedFields": mapped}
    answered = await api.call("POST", f"{CONNECTIONS}/validate-schema", body)
    assert answered.status in (200, 400, 422)


COUNTS = st.tuples(st.integers(8, 12), st.integers(18, 22), st.integers(48, 52))


@given(counts=COUNTS)
async def test_counts_around_the_limits_give_exactly_their_results(
    counts: tuple[int, int, int],
) -> None:
    sources, tables, fields = counts
    names = [f"f{n}" for n in range(fields)]
    last = {f"t{n}": ["a"] for n in range(tables - 1)} | {"wide": names}
    mapped = {f"db_{n}": {"t": ["a"]} for n in range(sources - 1)} | {"db_last": last}
    answered = await an_api().call(
        "POST", f"{CONNECTIONS}/validate-schema", {"mappedFields": mapped}
    )
    within = sources <= 10 and tables <= 20 and fields <= 50
    assert answered.status == 400
    assert answered.json["code"] == ("FET-1062" if within else "FET-1061")
