// What an operator sees at a glance, and what is done about dead letters.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/http";
import { operations } from "../api/operations";
import type { Actors, Dependencies, Dependency, OperatedJob, Redriven } from "../api/types";
import { href } from "../router";
import { texts } from "../texts";
import { ago, bytes, clock, count, seconds, time } from "../ui/format";
import { BarChart, LineChart, Spark } from "../ui/charts";
import { useLoaded, type Loaded } from "../ui/load";
import { Badge, Button, Failed, Field, Loading, Notice, SettledInput, type Tone } from "../ui/parts";
import { tell } from "../ui/toasts";
import { TONES } from "./jobs";

const t = texts.operations;
const LOOK_MS = 5000;
const SLOW_LOOK_MS = 15_000;
const LETTERS = 50;

export function OperationsPage() {
  const dependencies = useLoaded((abort) => operations.dependencies(abort), [], LOOK_MS);
  if (dependencies.problem?.isRefusal) {
    return (
      <>
        <div class="page-head"><h1>{t.title}</h1></div>
        <Failed problem={dependencies.problem}>{dependencies.problem.status === 403 ? <p>{t.notAllowed}</p> : null}</Failed>
      </>
    );
  }
  // who may not is asked for one part and told once
  const mayBeRefused = !dependencies.value && !dependencies.problem;
  return (
    <>
      <div class="page-head"><h1>{t.title}</h1></div>
      <DependenciesCards loaded={dependencies} />
      {mayBeRefused ? null : <Parts />}
    </>
  );
}

function Parts() {
  return (
    <>
      <div class="cards wide">
        <ActivityCard />
        <JobsCard />
        <QueuesCard />
        <BreakersCard />
        <ActorsCard />
        <AuditCard />
      </div>
      <DeadLettersCard />
    </>
  );
}

function Card<T>({ title, loaded, above, children }: { title: string; loaded: Loaded<T>; above?: ComponentChildren; children: (value: T) => ComponentChildren }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {above}
      {loaded.problem ? <Failed problem={loaded.problem} /> : null}
      {loaded.value !== undefined ? children(loaded.value) : loaded.loading ? <Loading /> : null}
    </section>
  );
}

function DependenciesCards({ loaded }: { loaded: Loaded<Dependencies> }) {
  if (!loaded.value) return loaded.problem ? <Failed problem={loaded.problem} /> : <Loading />;
  const { process, dependencies, draining } = loaded.value;
  return (
    <section aria-label={t.dependencies}>
      <h2>{t.dependencies} <span class="faint small">{t.process(process.host, process.role, process.version)}</span></h2>
      {loaded.problem ? <Failed problem={loaded.problem} /> : null}
      {draining ? <Notice kind="warn"><p>{t.draining}</p></Notice> : null}
      <div class="cards">{dependencies.map((each) => <DependencyCard key={each.name} dependency={each} />)}</div>
    </section>
  );
}

function toneOf(status: string): Tone {
  return status === "up" ? "good" : status === "down" ? "bad" : status === "degraded" ? "warn" : "idle";
}

function DependencyCard({ dependency }: { dependency: Dependency }) {
  const { name, status, optional, latencyMs, error, reason, history } = dependency;
  const failed = history.reduce((sum, each) => sum + each.failures, 0);
  const probes = history.reduce((sum, each) => sum + each.probes, 0);
  return (
    <div class="card">
      <p class="dependency">
        <strong>{name}</strong> <Badge tone={toneOf(status)}>{status}</Badge>
        {optional ? <span class="faint small"> {t.optional}</span> : null}
        <span class="faint number">{t.latency(latencyMs)}</span>
      </p>
      {error || reason ? <p class="error">{error ?? reason}</p> : null}
      <Spark label={t.history(name, failed, probes)} minutes={history} />
      <p class="hint">{t.lastHour}</p>
    </div>
  );
}

function ActivityCard() {
  const loaded = useLoaded((abort) => operations.activity(abort), [], LOOK_MS);
  return (
    <Card title={t.activity} loaded={loaded}>
      {({ minutes }) => {
        const times = minutes.map((each) => each.minute);
        const statuses = texts.jobs.statuses;
        return (
          <>
            <BarChart
              title={t.perMinute}
              times={times}
              series={[
                { name: statuses.completed, tone: "good", values: minutes.map((each) => each.completed) },
                { name: statuses.failed, tone: "bad", values: minutes.map((each) => each.failed) },
                { name: statuses.cancelled, tone: "warn", values: minutes.map((each) => each.cancelled) },
              ]}
            />
            <LineChart
              title={t.durations}
              times={times}
              series={[
                { name: t.longest, tone: "warn", values: minutes.map((each) => each.longestSeconds ?? null) },
                { name: t.average, tone: "busy", values: minutes.map((each) => each.averageSeconds ?? null) },
              ]}
            />
          </>
        );
      }}
    </Card>
  );
}

function JobsCard() {
  const loaded = useLoaded((abort) => operations.jobs(10, abort), [], LOOK_MS);
  return (
    <Card title={t.jobs} loaded={loaded}>
      {({ counts, running, waiting, failed }) => (
        <>
          <ul class="counts">
            {(["pending", "processing", "completed", "failed", "cancelled"] as const).map((status) => (
              <li key={status}><a href={href(["jobs"], { status })}><strong>{atMost(counts[status], counts.countedUpTo)}</strong> {texts.jobs.statuses[status]}</a></li>
            ))}
            <li><strong>{atMost(counts.parked, counts.countedUpTo)}</strong> {t.parked}</li>
          </ul>
          <p class="hint">{t.countedUpTo(count(counts.countedUpTo))}</p>
          <JobLines title={t.running} jobs={running} />
          <JobLines title={t.waiting} jobs={waiting} />
          <JobLines title={t.failed} jobs={failed} />
        </>
      )}
    </Card>
  );
}

function atMost(value: number, most: number): string {
  return value >= most ? `${count(most)}+` : count(value);
}

function JobLines({ title, jobs }: { title: string; jobs: OperatedJob[] }) {
  return (
    <>
      <h3>{title}</h3>
      {jobs.length === 0 ? <p class="faint">{t.nothing}</p> : (
        <ul class="lines">
          {jobs.map((job) => (
            <li key={job.id}>
              <a href={href(["jobs", job.id])}>{job.connections.join(", ") || job.id}</a> <Badge tone={TONES[job.status]}>{texts.jobs.statuses[job.status]}</Badge>
              <span class="faint small"> {job.error?.message ?? job.waitingReason ?? (job.rows > 0 ? texts.jobs.result(count(job.rows), bytes(job.bytes)) : "")} · {ago(job.completedAt ?? job.startedAt ?? job.createdAt)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function QueuesCard() {
  const queues = useLoaded((abort) => operations.queues(abort), [], LOOK_MS);
  const outbox = useLoaded((abort) => operations.outbox(abort), [], LOOK_MS);
  const waits = (amount: number, age: number) => (amount > 0 ? `${count(amount)}, ${t.oldest(seconds(age))}` : "0");
  return (
    <section class="card" aria-label={t.queues}>
      <h2>{t.queues}</h2>
      {queues.problem ? <Failed problem={queues.problem} /> : null}
      {queues.value ? (
        <table>
          <thead><tr><th scope="col">{t.queue}</th><th scope="col" class="number">{t.ready}</th><th scope="col" class="number">{t.consumers}</th></tr></thead>
          <tbody>
            {queues.value.queues.map((each) => (
              <tr key={each.name}><td>{each.name}<br /><span class="faint small">{each.purpose}</span></td><td class="number">{each.ready != null ? count(each.ready) : "?"}</td><td class="number">{each.consumers != null ? count(each.consumers) : each.ready == null ? "?" : <span class="faint small">{t.notTold}</span>}</td></tr>
            ))}
          </tbody>
        </table>
      ) : queues.loading ? <Loading /> : null}
      <h3>{t.outbox}</h3>
      {outbox.problem ? <Failed problem={outbox.problem} /> : null}
      {outbox.value ? (
        <dl class="facts">
          <div><dt>{t.pendingEvents}</dt><dd>{waits(outbox.value.pendingEvents, outbox.value.oldestEventSeconds)}</dd></div>
          <div><dt>{t.undispatched}</dt><dd>{waits(outbox.value.undispatchedJobs, outbox.value.oldestUndispatchedSeconds)}</dd></div>
          <div><dt>{t.dispatched}</dt><dd>{waits(outbox.value.dispatchedJobs, outbox.value.oldestDispatchedSeconds)}</dd></div>
        </dl>
      ) : null}
    </section>
  );
}

function BreakersCard() {
  const loaded = useLoaded((abort) => operations.breakers(abort), [], LOOK_MS);
  return (
    <Card title={t.breakers} loaded={loaded}>
      {({ adapters, connections }) => (
        <>
          <ul class="lines">{adapters.map((each) => <li key={each.name}>{each.name} <Badge tone={each.state === "closed" ? "good" : "bad"}>{each.state}</Badge></li>)}</ul>
          <h3>{t.connectionsDown}</h3>
          {connections.length === 0 ? <p class="faint">{t.noneDown}</p> : (
            <ul class="lines">
              {connections.map((each) => (
                <li key={each.connectionId}>
                  <a href={href(["connections"], { q: each.configName })}>{each.configName}</a> <span class="faint small">{texts.failures.at(each.stage, each.reason)} {texts.failures.advice(each.stage, each.reason)} {each.retryAt ? t.retryAt(clock(each.retryAt)) : ""}</span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </Card>
  );
}

function ActorsCard() {
  const loaded = useLoaded((abort) => operations.actors(abort), [], LOOK_MS);
  return (
    <Card title={t.actors} loaded={loaded}>
      {({ actors }) => (
        <div class="table-box short" tabIndex={0} role="region" aria-label={t.actors}>
          <table>
            <thead><tr><th scope="col">{t.actor}</th><th scope="col">{t.state}</th><th scope="col" class="number">{t.restarts}</th><th scope="col">{t.lastCrash}</th></tr></thead>
            <tbody>
              {[...actors].sort(worstFirst).map((each) => (
                <tr key={each.name}>
                  <td>{each.name}</td>
                  <td><Badge tone={each.state === "running" ? "good" : "warn"}>{each.state}</Badge></td>
                  <td class="number">{each.restarts}</td>
                  <td>{each.lastCrash ?? ""} {each.lastCrashAt ? <span class="faint">{ago(each.lastCrashAt)}</span> : null}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

type Actor = Actors["actors"][number];

function worstFirst(left: Actor, right: Actor): number {
  const stands = (actor: Actor) => Number(actor.state === "running");
  return stands(left) - stands(right) || right.restarts - left.restarts || left.name.localeCompare(right.name);
}

function AuditCard() {
  const loaded = useLoaded((abort) => operations.audit({ limit: 20 }, abort), [], SLOW_LOOK_MS);
  return (
    <Card title={t.audit} loaded={loaded}>
      {({ items }) => items.length === 0 ? <p class="faint">{t.nothing}</p> : (
        <div class="table-box short" tabIndex={0} role="region" aria-label={t.audit}>
          <table>
            <thead><tr><th scope="col">{t.auditTime}</th><th scope="col">{t.auditAction}</th><th scope="col">{t.auditActor}</th><th scope="col">{t.auditOutcome}</th></tr></thead>
            <tbody>
              {items.map((each) => (
                <tr key={each.id}><td>{time(each.time)}</td><td>{each.action}<br /><span class="faint small">{each.target}</span></td><td>{each.actor}</td><td>{each.outcome}</td></tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function DeadLettersCard() {
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [redriven, setRedriven] = useState<Redriven>();
  const loaded = useLoaded((abort) => operations.deadLetters({ limit: LETTERS, reason }, abort), [reason], SLOW_LOOK_MS);

  async function redrive(): Promise<void> {
    setProblem(undefined);
    try {
      const done = await operations.redrive(reason ? { reason } : {});
      setRedriven(done);
      tell(t.redriven(done.dispatched, done.letters.length));
      loaded.reload();
    } catch (error) {
      setProblem(asProblem(error));
    }
  }

  const total = loaded.value?.total;
  // the field and the button stay while others are read: who uses them keeps the focus and the click
  const choice = (
    <div class="filters">
      <Field label={t.redriveReason}>
        {(ids) => <SettledInput ids={ids} type="search" value={reason} onSettled={(value) => setReason(value.trim())} />}
      </Field>
      <Button disabled={total === 0} onClick={redrive}>{reason ? t.redrive : t.redriveAll}</Button>
      {loaded.value ? <p class="faint" role="status">{t.letters(loaded.value.letters.length, loaded.value.total)}</p> : null}
    </div>
  );
  return (
    <Card title={t.deadLetters} loaded={loaded} above={choice}>
      {({ letters }) => (
        <>
          {problem ? <Failed problem={problem} /> : null}
          {redriven ? (
            <Notice kind="info">
              <p>{t.redriven(redriven.dispatched, redriven.letters.length)}</p>
              <ul>{redriven.letters.slice(0, LETTERS).map((each) => <li key={each.position}>{each.jobId ?? each.position}: {t.redriveResults[each.result] ?? each.result}</li>)}</ul>
            </Notice>
          ) : null}
          {letters.length === 0 ? <p class="faint">{t.noLetters}</p> : (
            <div class="table-box" tabIndex={0} role="region" aria-label={t.deadLetters}>
              <table>
                <thead><tr><th scope="col">{t.letterReason}</th><th scope="col">{t.letterJob}</th><th scope="col">{t.letterRoute}</th><th scope="col">{t.letterSent}</th><th scope="col" class="number">{t.letterSize}</th></tr></thead>
                <tbody>
                  {letters.map((each) => (
                    <tr key={each.position}>
                      <td><Badge tone="bad">{each.reason}</Badge></td>
                      <td>{each.jobId ? <a href={href(["jobs", each.jobId])}>{each.jobId}</a> : ""}</td>
                      <td>{each.exchange} {each.routingKey}</td>
                      <td>{each.sentAt ? time(each.sentAt) : ""}</td>
                      <td class="number">{bytes(each.bytes)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </Card>
  );
}
