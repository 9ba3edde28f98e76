"""``/v1/operations/audit``: who did what (decision 039)."""

from quart import Response, request

from fetcher.api.list_cursors import CURSOR_SCHEMA, parse_place, place_text
from fetcher.api.list_parameters import invalid_parameter, last_values
from fetcher.api.models.audit import AuditEntryAnswer, AuditListAnswer
from fetcher.api.operations_looks import LIMIT, asked_limit, look
from fetcher.api.routing import Route, answer, query_parameter
from fetcher.api.services import ApiServices
from fetcher.domain.audit import MAX_CHARACTERS, AuditAction, AuditCursor, AuditQuery


class AuditRoutes:
    def __init__(self, services: ApiServices) -> None:
        self._trail = services.audit.trail

    async def list(self) -> Response:
        query = _query(last_values(request.args))
        page = await self._trail.list_page(query)
        return answer(
            AuditListAnswer(
                items=[AuditEntryAnswer.of(entry) for entry in page.items],
                next_cursor=place_text(page.next.time, page.next.id) if page.next else None,
                limit=query.limit,
            )
        )


def _query(sent: dict[str, str]) -> AuditQuery:
    """Raise ``FET-0405``, ``FET-0406``."""
    before = None
    if "cursor" in sent:
        time, entry_id = parse_place(sent["cursor"])
        before = AuditCursor(time=time, id=entry_id)
    return AuditQuery(
        actor=_text(sent, "actor"),
        action=_action(sent.get("action")),
        target=_text(sent, "target"),
        before=before,
        limit=asked_limit(sent.get("limit")),
    )


def _text(sent: dict[str, str], name: str) -> str | None:
    text = sent.get(name)
    if text is not None and (len(text) > MAX_CHARACTERS or "\0" in text):
        raise invalid_parameter(
            name, f"must be at most {MAX_CHARACTERS} characters, none of them NUL"
        )
    return text


def _action(text: str | None) -> AuditAction | None:
    if text is None:
        return None
    if text not in frozenset(AuditAction):
        raise invalid_parameter("action", f"must be one of {', '.join(AuditAction)}")
    return AuditAction(text)


_TEXT = {"type": "string", "maxLength": MAX_CHARACTERS}


def audit_routes(services: ApiServices) -> list[Route]:
    """Apart from other looks it asks for a permission of its own: it tells of persons."""
    return [
        look(
            "audit",
            "Who did what, and how it ended, the newest first",
            AuditRoutes(services).list,
            AuditListAnswer,
            query_parameter("actor", "Only what this caller did", **_TEXT),
            query_parameter("action", "Only what was done in this way", enum=[*AuditAction]),
            query_parameter("target", "Only what was done to what has this id", **_TEXT),
            LIMIT,
            query_parameter("cursor", "`nextCursor` of the page before", **CURSOR_SCHEMA),
            action="audit",
        )
    ]
