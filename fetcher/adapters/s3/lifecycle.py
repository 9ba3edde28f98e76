"""The bucket's rule that ends what a killed worker left behind: unfinished uploads."""

from collections.abc import Mapping
from typing import Any, Final

from fetcher.adapters.s3.failures import Deadline, StoreFailure, call_store
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.topology import Finding, FindingStatus

DAYS: Final = 1
RULE_ID: Final = "fetcher-abort-unfinished-uploads"
CALL: Final = Deadline(10.0)


def abort_rule(prefix: str) -> dict[str, Any]:
    """The rule as S3 takes it; ``prefix`` is OBJECT_STORAGE_KEY_PREFIX."""
    return {
        "ID": RULE_ID,
        "Status": "Enabled",
        "Filter": {"Prefix": prefix},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": DAYS},
    }


class BucketLifecycle:
    """The lifecycle rules of one bucket. Raises PortUnavailable where the store is away."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def settle(self, prefix: str, *, create: bool) -> Finding:
        """Whether a rule ends our unfinished uploads after a day; with ``create`` one is put beside
        the others. Two who put rules at the same time lose one of them: S3 has no other way."""
        try:
            rules = await self._rules()
            if any(_serves(rule, prefix) for rule in rules):
                return self._found(FindingStatus.OK)
            if not create:
                return self._found(FindingStatus.MISSING, "no rule aborts unfinished uploads")
            await self._put([rule for rule in rules if rule.get("ID") != RULE_ID], prefix)
        except StoreFailure as error:
            failure = error
        else:
            return self._found(FindingStatus.CREATED)
        if failure.is_transient:
            raise PortUnavailable(f"s3 lifecycle failed: {failure.reason}")
        # A user that may only read and write objects is how it should be, and some stores have no
        # such rules at all.
        status = FindingStatus.REFUSED if create else FindingStatus.UNCHECKED
        return self._found(status, f"the store does not tell or take rules: {failure.reason}")

    async def _rules(self) -> list[Mapping[str, Any]]:
        async def get() -> list[Mapping[str, Any]]:
            answer = await self._client.get_bucket_lifecycle_configuration(Bucket=self._bucket)
            return list(answer.get("Rules", ()))

        try:
            return await call_store(CALL, get)
        except StoreFailure as failure:
            if failure.code == "NoSuchLifecycleConfiguration":
                return []
            raise

    async def _put(self, others: list[Mapping[str, Any]], prefix: str) -> None:
        rules = [*others, abort_rule(prefix)]

        async def put() -> None:
            await self._client.put_bucket_lifecycle_configuration(
                Bucket=self._bucket, LifecycleConfiguration={"Rules": rules}
            )

        await call_store(CALL, put)

    def _found(self, status: FindingStatus, *details: str) -> Finding:
        name = f"{self._bucket}: abort unfinished uploads after {DAYS} day"
        return Finding(kind="bucket rule", name=name, status=status, details=details)


def _serves(rule: Mapping[str, Any], prefix: str) -> bool:
    """Whether the rule covers every key of ours: one with tags or sizes does not."""
    ends = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
    condition = rule.get("Filter", {})
    covered = rule.get("Prefix", condition.get("Prefix", ""))
    return (
        rule.get("Status") == "Enabled"
        and isinstance(ends, int)
        and ends <= DAYS
        and set(condition) <= {"Prefix"}
        and prefix.startswith(covered)
    )
