"""A filter that is given twice is not lost: below ``dataRequest`` no member may be repeated.

Elsewhere the last one counts (spec rest-api 5.1).
"""

import pytest

from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, Api, an_api_with

JSON = {"Content-Type": "application/json"}
FIELDS = '"mappedFields":{"sales_db":{"orders":["id"]}}'


async def asked(api: Api, data_request: str, metadata: str = '{"source":"acme-reports"}') -> str:
    body = f'{{"dataRequest":{data_request},"metadata":{metadata}}}'.encode()
    answered = await api.call("POST", JOBS, data=body, headers=JSON)
    if answered.status == 202:
        return ""
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    return str(answered.json["message"])


@pytest.mark.parametrize(
    ("data_request", "path"),
    [
        (
            f'{{{FIELDS},"filters":{{"sales_db":{{"orders":{{"id":{{"gt":[1]}},"id":{{"lt":[9]}}}}}}}}}}',
            "dataRequest.filters.sales_db.orders.id",
        ),
        (
            f'{{{FIELDS},"filters":{{"sales_db":{{"orders":{{"id":{{"gt":[1],"gt":[2]}}}}}}}}}}',
            "dataRequest.filters.sales_db.orders.id.gt",
        ),
        (
            f'{{{FIELDS},"filters":{{"sales_db":{{"orders":{{"id":{{"gt":[1],"GT":[2]}}}}}}}}}}',
            "dataRequest.filters.sales_db.orders.id.gt",
        ),
        (f"{{{FIELDS},{FIELDS}}}", "dataRequest.mappedFields"),
        (f'{{{FIELDS},"filters":{{}},"FILTERS":{{}}}}', "dataRequest.filters"),
        (
            '{"mappedFields":{"sales_db":{"orders":["id"],"orders":["total"]}}}',
            "dataRequest.mappedFields.sales_db.orders",
        ),
        (
            '{"mappedFields":{"sales_db":{"\\ud800":["id"],"\\udfff":["id"]}}}',
            'dataRequest.mappedFields.sales_db["\ufffd"]',
        ),
        (
            f'{{{FIELDS},"options":{{"limits":{{"maxConcurrency":1,"maxConcurrency":2}}}}}}',
            "dataRequest.options.limits.maxConcurrency",
        ),
    ],
)
async def test_member_that_is_given_twice_is_refused_by_its_path(
    data_request: str, path: str
) -> None:
    api = await an_api_with("sales_db")
    assert await asked(api, data_request) == f"{path} is given twice"


async def test_of_repeated_metadata_and_members_beside_it_the_last_counts() -> None:
    api = await an_api_with("sales_db")
    told = await asked(api, f"{{{FIELDS}}}", '{"source":"other","source":"acme-reports"}')
    assert told == ""
    [job] = (await api.get(JOBS)).json["items"]
    assert job["source"] == "acme-reports"
    body = (
        b'{"configName":"x","configName":"other_db","type":"POSTGRESQL","host":"h.test","port":1,'
    )
    body += b'"databaseName":"d","userName":"u","password":"p"}'
    made = await api.call("POST", CONNECTIONS, data=body, headers={**JSON, **PRODUCT})
    assert (made.status, made.json["configName"]) == (201, "other_db")
