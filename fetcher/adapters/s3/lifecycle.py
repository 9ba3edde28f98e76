"""The bucket's rules: unfinished uploads are aborted, results expire."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from fetcher.adapters.s3.failures import Deadline, StoreFailure, call_store
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.result_keys import RESULTS_FOLDER
from fetcher.domain.topology import Finding, FindingStatus

ABORT_DAYS: Final = 1
SOONER: Final = "sooner than RESULT_RETENTION_DAYS"
OURS: Final = "`fetcher topology declare --bucket` replaces it"
THEIRS: Final = "it is its owner's to change"
UNTOLD: Final = "their jobs do not tell that they are gone unless RESULT_RETENTION_DAYS is as short"
CALL: Final = Deadline(10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRule:
    """One rule of ours. ``serves`` judges a rule of anybody's that has ``prefix`` in its scope,
    ``defeats`` one that has some keys below it: whether it does what ours is to keep from being
    done."""

    title: str
    document: Mapping[str, Any]
    """The rule as S3 takes it."""
    prefix: str
    serves: Callable[[Mapping[str, Any]], bool]
    defeats: Callable[[Mapping[str, Any]], bool] = lambda _: False

    @property
    def id(self) -> object:
        return self.document["ID"]

    def is_served_by(self, rule: Mapping[str, Any]) -> bool:
        """Whether the rule covers every key of ours: one with tags or sizes does not."""
        return (
            rule.get("Status") == "Enabled"
            and set(rule.get("Filter", {})) <= {"Prefix"}
            and self.prefix.startswith(_scope(rule))
            and self.serves(rule)
        )

    def is_defeated_by(self, rule: Mapping[str, Any]) -> bool:
        return _touches(rule, self.prefix) and self.defeats(rule)


def _touches(rule: Mapping[str, Any], prefix: str) -> bool:
    """Whether results under the prefix may fall under the rule, of whatever size they are. They
    have no tags: a rule for tagged objects is none for them."""
    scope = _scope(rule)
    in_reach = prefix.startswith(scope) or scope.startswith(prefix)
    return rule.get("Status") == "Enabled" and in_reach and not _is_for_tagged(rule)


def _is_for_tagged(rule: Mapping[str, Any]) -> bool:
    condition = rule.get("Filter", {})
    return bool(condition.get("Tag") or condition.get("And", {}).get("Tags"))


def _scope(rule: Mapping[str, Any]) -> str:
    condition = rule.get("Filter", {})
    together = condition.get("And", {})
    return str(rule.get("Prefix", condition.get("Prefix", together.get("Prefix", ""))))


def abort_rule(key_prefix: str) -> BucketRule:
    """What a killed worker left behind ends after a day. ``key_prefix`` is
    OBJECT_STORAGE_KEY_PREFIX."""

    def serves(rule: Mapping[str, Any]) -> bool:
        days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
        return isinstance(days, int) and days <= ABORT_DAYS

    return BucketRule(
        title=f"abort unfinished uploads after {ABORT_DAYS} day",
        document={
            "ID": "fetcher-abort-unfinished-uploads",
            "Status": "Enabled",
            "Filter": {"Prefix": key_prefix},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": ABORT_DAYS},
        },
        prefix=key_prefix,
        serves=serves,
    )


def expiry_rule(key_prefix: str, *, days: int, now: datetime, tenant_id: str = "") -> BucketRule:
    """Results expire, none before its time, and nothing else that lies in the bucket. Whether a
    rule that deletes from a date on is too early is judged by a result of ``now``. ``key_prefix``
    is the tenant's, and so is the rule: it takes no other tenant's place."""

    def serves(rule: Mapping[str, Any]) -> bool:
        return bool(rule.get("Expiration", {}).get("Days") == days)

    def defeats(rule: Mapping[str, Any]) -> bool:
        expiration = rule.get("Expiration", {})
        after, at = expiration.get("Days"), expiration.get("Date")
        if isinstance(at, datetime):
            return _aware(at) < now + timedelta(days=days)
        return isinstance(after, int) and after < days

    prefix = _results_prefix(key_prefix)
    return BucketRule(
        title=f"results expire after {days} days",
        document={
            "ID": _expiry_id(tenant_id),
            "Status": "Enabled",
            "Filter": {"Prefix": prefix},
            "Expiration": {"Days": days},
        },
        prefix=prefix,
        serves=serves,
        defeats=defeats,
    )


def _expiry_id(tenant_id: str) -> str:
    # S3 takes 255 characters, and a tenant's id may have more
    whose = f"-{sha256(tenant_id.encode()).hexdigest()[:32]}" if tenant_id else ""
    return f"fetcher-expire-results{whose}"


def _results_prefix(key_prefix: str) -> str:
    return f"{key_prefix}{RESULTS_FOLDER}/"


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _expires(rule: Mapping[str, Any]) -> bool:
    """Whether it deletes objects, and not only what is left of them."""
    return bool({"Date", "Days"} & rule.get("Expiration", {}).keys())


def _early(rule: Mapping[str, Any]) -> str:
    name, expiration = str(rule.get("ID", "without an ID")), rule["Expiration"]
    at = expiration.get("Date")
    when = f"after {expiration.get('Days')} days"
    if isinstance(at, datetime):
        when = f"from {_aware(at).astimezone(UTC):%Y-%m-%d} on"
    return f"rule {name!r} deletes results {when}"


class BucketLifecycle:
    """The lifecycle rules of one bucket. Raises PortUnavailable where the store is away."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def settle(self, rule: BucketRule, *, create: bool) -> Finding:
        """Whether some rule does what this one would; with ``create`` it is put beside the others.
        Two who put rules at the same time lose one of them: S3 has no other way."""
        try:
            rules = await self._rules()
            # What we put takes the place of what we once put, and of nobody else's.
            defeating = [
                each
                for each in rules
                if rule.is_defeated_by(each) and not (create and each.get("ID") == rule.id)
            ]
            if defeating:
                details = (
                    f"{_early(each)}: {SOONER}; {OURS if each.get('ID') == rule.id else THEIRS}"
                    for each in defeating
                )
                return self._found(rule, FindingStatus.DIFFERS, *details)
            if any(rule.is_served_by(each) for each in rules):
                return self._found(rule, FindingStatus.OK)
            if not create:
                return self._found(rule, FindingStatus.MISSING, "no rule does that")
            others = [each for each in rules if each.get("ID") != rule.id]
            await self._put([*others, rule.document])
        except StoreFailure as error:
            failure = error
        else:
            return self._found(rule, FindingStatus.CREATED)
        if failure.is_transient:
            raise PortUnavailable(f"s3 lifecycle failed: {failure.reason}")
        if failure.code == "NoSuchBucket":
            return self._found(rule, FindingStatus.MISSING, "there is no such bucket")
        # A user that may only read and write objects is how it should be, and some stores have no
        # such rules at all.
        status = FindingStatus.REFUSED if create else FindingStatus.UNCHECKED
        return self._found(rule, status, f"the store does not tell or take rules: {failure.reason}")

    async def expiring_results(self, key_prefix: str) -> Finding | None:
        """What deletes results although they are to be kept for ever: the owner of the bucket may
        have chosen that, and is told what follows. None also where the store does not tell."""
        try:
            rules = await self._rules()
        except StoreFailure:
            return None
        prefix = _results_prefix(key_prefix)
        expiring = [each for each in rules if _touches(each, prefix) and _expires(each)]
        if not expiring:
            return None
        return Finding(
            kind="bucket rule",
            name=f"{self._bucket}: results are kept",
            status=FindingStatus.ACCEPTED,
            details=tuple(f"{_early(each)}: {UNTOLD}" for each in expiring),
        )

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

    async def _put(self, rules: list[Mapping[str, Any]]) -> None:
        async def put() -> None:
            await self._client.put_bucket_lifecycle_configuration(
                Bucket=self._bucket, LifecycleConfiguration={"Rules": rules}
            )

        await call_store(CALL, put)

    def _found(self, rule: BucketRule, status: FindingStatus, *details: str) -> Finding:
        name = f"{self._bucket}: {rule.title}"
        return Finding(kind="bucket rule", name=name, status=status, details=details)
