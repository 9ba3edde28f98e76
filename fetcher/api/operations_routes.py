"""``/v1/operations``: what operators look at, and the one thing they do by it (design section 2).

What is of one process only says which: behind a load balancer every answer may be another's.
"""

from collections import Counter

from quart import Response, request

from fetcher.api.asgi import caller_of
from fetcher.api.list_parameters import invalid_parameter, last_values
from fetcher.api.models.dead_letters import (
    MOST_SHOWN_CHARACTERS,
    DeadLetterAnswer,
    DeadLettersAnswer,
    RedriveAnswer,
    RedriveRequest,
)
from fetcher.api.models.operations import (
    ActivityAnswer,
    ActivityMinuteAnswer,
    ActorAnswer,
    ActorsAnswer,
    AdapterBreakerAnswer,
    BreakersAnswer,
    ConnectionBreakerAnswer,
    DependenciesAnswer,
    DependencyAnswer,
    JobCountsAnswer,
    JobsAnswer,
    OperatedJobAnswer,
    OutboxAnswer,
    ProcessAnswer,
    QueueAnswer,
    QueuesAnswer,
)
from fetcher.api.operations_looks import LIMIT, MAX_LIMIT, ROOT, asked_limit, look
from fetcher.api.payloads import read_payload
from fetcher.api.refusals import BODY
from fetcher.api.routing import Route, Success, answer, large_answer, query_parameter
from fetcher.api.services import ApiServices
from fetcher.commands.dead_letters import Choice, Examined, Redriven
from fetcher.domain.audit import AuditAction, letters_target
from fetcher.domain.job_store import JobQuery
from fetcher.domain.jobs import Job, JobStatus
from fetcher.queries.activity import last_hour

QUEUE_MISSING = "FET-1028"


class OperationsRoutes:
    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._operations = services.operations
        self._process = ProcessAnswer.of(services.operations.process)

    async def dependencies(self) -> Response:
        """Probes all of them first, as readiness does; while the process drains nothing is probed
        and what was known before is told."""
        system = self._services.system
        readiness = await system.readiness()
        optional = system.optional_dependencies
        known = self._operations.dependencies()
        return answer(
            DependenciesAnswer(
                process=self._process,
                draining=readiness.draining,
                dependencies=[
                    DependencyAnswer.of(each, optional=each.name in optional) for each in known
                ],
            )
        )

    async def queues(self) -> Response:
        depths = await self._operations.queues.depths()
        return answer(QueuesAnswer(queues=[QueueAnswer.of(each) for each in depths]))

    async def outbox(self) -> Response:
        events = await self._operations.events.backlog()
        active = await self._operations.dispatch.active_jobs()
        return answer(OutboxAnswer.of(events, active))

    async def jobs(self) -> Response:
        limit = asked_limit(_sent("limit"))
        by_status = await self._operations.statistics.count_by_status()
        active = await self._operations.dispatch.active_jobs()
        running = await self._oldest_that_are(JobStatus.PROCESSING, limit=limit)
        waiting = await self._oldest_that_are(JobStatus.PENDING, limit=limit)
        failed = await self._services.jobs.latest_failed(limit=limit)
        return await large_answer(
            lambda: JobsAnswer(
                counts=JobCountsAnswer.of(by_status, parked=active.parked),
                running=[OperatedJobAnswer.of(job) for job in running],
                waiting=[OperatedJobAnswer.of(job) for job in waiting],
                failed=[OperatedJobAnswer.of(job) for job in failed],
            )
        )

    async def _oldest_that_are(self, status: JobStatus, *, limit: int) -> tuple[Job, ...]:
        query = JobQuery(statuses=frozenset({status}), ascending=True, limit=limit)
        return (await self._services.jobs.list_page(query)).items

    async def activity(self) -> Response:
        minutes = await last_hour(self._operations.statistics, self._services.now())
        return answer(ActivityAnswer(minutes=[ActivityMinuteAnswer.of(each) for each in minutes]))

    async def breakers(self) -> Response:
        listed = await self._operations.breakers.list_open(limit=MAX_LIMIT)
        return answer(
            BreakersAnswer(
                process=self._process,
                adapters=[
                    AdapterBreakerAnswer(name=name, state=state())
                    for name, state in self._operations.adapter_breakers.items()
                ],
                connections=[ConnectionBreakerAnswer.of(each) for each in listed],
                open_connections=await self._operations.breakers.count_open(),
            )
        )

    async def actors(self) -> Response:
        actors = [ActorAnswer.of(each) for each in self._operations.actors()]
        return answer(ActorsAnswer(process=self._process, actors=actors))

    async def dead_letters(self) -> Response:
        choice = Choice(reason=_reason(_sent("reason")), limit=asked_limit(_sent("limit")))
        letters: list[DeadLetterAnswer] = []

        def tell(each: Examined) -> None:
            letters.append(DeadLetterAnswer.of(each))

        looked = await self._operations.letters.list(choice, tell)
        return answer(DeadLettersAnswer.of(looked, letters))

    async def redrive(self) -> Response:
        sent = await read_payload(request, RedriveRequest, lambda payload: payload)
        choice = Choice(reason=sent.reason, limit=sent.limit or MAX_LIMIT)
        results: list[tuple[Examined, Redriven]] = []
        counted: Counter[Redriven] = Counter()
        caller = caller_of(request.scope)
        async with self._services.audit.deed(AuditAction.DEAD_LETTERS_REDRIVEN, caller) as deed:

            def tell(each: Examined, result: Redriven) -> None:
                results.append((each, result))
                counted[result] += 1
                deed.target = letters_target(counted[Redriven.DISPATCHED])

            stop = await self._operations.letters.redrive(choice, tell)
        return answer(RedriveAnswer.of(results, stop))


def _sent(name: str) -> str | None:
    return last_values(request.args).get(name)


def _reason(text: str | None) -> str | None:
    if text is not None and len(text) > MOST_SHOWN_CHARACTERS:
        raise invalid_parameter("reason", f"must be at most {MOST_SHOWN_CHARACTERS} characters")
    return text


_REASON = query_parameter(
    "reason",
    "Only letters that were rejected for this reason",
    type="string",
    maxLength=MOST_SHOWN_CHARACTERS,
)


def operations_routes(services: ApiServices) -> list[Route]:
    routes = OperationsRoutes(services)
    return [
        look(
            "dependencies",
            "Every dependency of this process, probed now, and its last hour",
            routes.dependencies,
            DependenciesAnswer,
        ),
        look("queues", "How many messages lie in the queues", routes.queues, QueuesAnswer),
        look("outbox", "What waits to be published", routes.outbox, OutboxAnswer),
        look(
            "jobs",
            "Jobs by state; those that run, wait and have failed",
            routes.jobs,
            JobsAnswer,
            LIMIT,
        ),
        look(
            "activity",
            "What ended in the last hour, minute by minute",
            routes.activity,
            ActivityAnswer,
        ),
        look("breakers", "What is left alone because it is down", routes.breakers, BreakersAnswer),
        look(
            "actors", "The actors of this process and their restarts", routes.actors, ActorsAnswer
        ),
        look(
            "dead-letters",
            "Work messages that nobody could work on",
            routes.dead_letters,
            DeadLettersAnswer,
            LIMIT,
            _REASON,
            refusals=[QUEUE_MISSING],
        ),
        Route(
            method="POST",
            path=f"{ROOT}/dead-letters/redrive",
            name="redrive_dead_letters",
            summary="Dispatch the jobs of dead letters anew, from their records",
            tag="Operations",
            resource="operations",
            action="post",
            handler=routes.redrive,
            request=RedriveRequest,
            refusals=[*BODY, "FET-0401", QUEUE_MISSING],
            successes={200: Success(description="What became of each", model=RedriveAnswer)},
        ),
    ]
