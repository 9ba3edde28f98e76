// One job: how far it is, why it failed and what to do, its result.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyOf, ExactNumber, writeJson } from "../api/exact";
import { showsRows } from "../api/document";
import { asProblem, type Problem } from "../api/http";
import { connections, jobs } from "../api/operations";
import type { Job, Preview } from "../api/types";
import { asOpening, asOpeningOfFile, begin } from "../request";
import { go, href } from "../router";
import { texts } from "../texts";
import { between, bytes, count, seconds, time } from "../ui/format";
import { useLoaded, useShown } from "../ui/load";
import { Badge, Button, Copy, Empty, Failed, Loading, Notice } from "../ui/parts";
import { tell } from "../ui/toasts";
import { allConnections } from "./connections";
import { TONES } from "./jobs";

const t = texts.job;
const LOOK_MS = 1000;
const PREVIEW_ROWS = 100;
/** Refused to be previewed for its size. */
const TOO_LARGE = "FET-1026";

export function JobPage({ id }: { id: string }) {
  const [ended, setEnded] = useState(false);
  const loaded = useLoaded((abort) => jobs.get(id, abort), [id], ended ? 0 : LOOK_MS);
  const job = loaded.value;
  useEffect(() => setEnded(job !== undefined && hasEnded(job)), [job?.status]);
  const request = useMemo(() => (job ? writeJson(requestOf(job), 2) : ""), [job]);
  if (!job) {
    if (!loaded.problem) return <Loading />;
    if (loaded.problem.status === 404 || loaded.problem.code === "FET-0404") return <Empty title={t.unknown}><a href={href(["jobs"])}>{texts.app.jobs}</a></Empty>;
    return <Failed problem={loaded.problem}><Button onClick={loaded.reload}>{texts.common.reload}</Button></Failed>;
  }
  return (
    <>
      {loaded.problem ? <Failed problem={loaded.problem} /> : null}
      <Head job={job} onChange={loaded.reload} />
      {job.error ? <WhyItFailed job={job} /> : null}
      {job.waitingReason ? <Notice kind="warn"><p>{t.waits}: {job.waitingReason}</p><p>{t.waitsAdvice} <a href={href(["connections"])}>{texts.app.connections}</a></p></Notice> : null}
      <div class="split">
        <div>
          <Facts job={job} />
          {job.status === "completed" && !job.resultDeletedAt && (job.resultPath || job.resultHmac) ? <OpeningCard job={job} /> : null}
          <ProgressCard job={job} />
          {job.attempts?.length ? <Attempts job={job} /> : null}
        </div>
        <div>
          {job.status === "completed" && !job.resultDeletedAt ? <PreviewCard job={job} /> : null}
          <section class="card">
            <div class="page-head">
              <h2>{t.request}</h2>
              <Copy text={request} />
            </div>
            <pre tabIndex={0}>{request}</pre>
          </section>
        </div>
      </div>
    </>
  );
}

function hasEnded(job: Job): boolean {
  return job.status === "completed" || job.status === "failed" || job.status === "cancelled";
}

function requestOf(job: Job) {
  const { mappedFields, filters, options } = job;
  // the service's own word in what was once sent (the reference puts it there)
  const { error: _told, ...metadata } = job.metadata ?? {};
  return { dataRequest: { mappedFields, ...(filters ? { filters } : {}), ...(options ? { options } : {}) }, metadata };
}

function Head({ job, onChange }: { job: Job; onChange: () => void }) {
  const isShown = useShown();
  const [problem, setProblem] = useState<Problem>();

  async function attempt(deed: () => Promise<void>): Promise<void> {
    setProblem(undefined);
    try {
      await deed();
    } catch (error) {
      setProblem(asProblem(error));
    }
  }

  const cancel = () => attempt(async () => {
    await jobs.cancel(job.id);
    tell(t.cancelled);
    onChange();
  });
  const rerun = () => attempt(async () => {
    const made = await jobs.rerun(job.id);
    tell(t.rerunDone);
    if (isShown.current) go(["jobs", made.jobId]);
  });
  const download = () => attempt(async () => {
    const answer = await jobs.result(job.id);
    save(await answer.blob(), sealedName(job));
  });

  return (
    <>
      <div class="page-head">
        <h1>{t.title(job.id)} <Badge tone={TONES[job.status]}>{texts.jobs.statuses[job.status]}</Badge></h1>
        <div class="actions">
          {hasEnded(job) ? <Button onClick={rerun}>{t.rerun}</Button> : (
            <Button kind="danger" disabled={Boolean(job.cancelRequestedAt)} onClick={cancel}>{job.cancelRequestedAt ? texts.jobs.cancelling : t.cancel}</Button>
          )}
          <Button onClick={() => { begin(copyOf(requestOf(job))); go(["build"]); }}>{t.reuse}</Button>
          {job.status === "completed" && !job.resultDeletedAt ? <Button kind="primary" label={t.downloadHint} onClick={download}>{t.download}</Button> : null}
        </div>
      </div>
      {problem ? <Failed problem={problem} /> : null}
    </>
  );
}

function sealedName(job: Job): string {
  return `${job.id}.sealed`;
}

function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function WhyItFailed({ job }: { job: Job }) {
  const error = job.error;
  if (!error) return null;
  if (job.status === "cancelled") return <Notice><p>{texts.failures.advice(error.stage, error.reason, error.code)}</p></Notice>;
  return (
    <section class="notice bad" aria-label={t.failure}>
      <p class="notice-title">{t.failure}</p>
      <p>{error.message}</p>
      {error.stage ? <p>{texts.failures.at(error.stage, error.reason ?? null)}</p> : null}
      <p><strong>{t.todo}:</strong> {texts.failures.advice(error.stage, error.reason, error.code)}</p>
      <p class="faint">{[t.code(error.code), error.source ? t.ofSource(error.source) : ""].filter(Boolean).join(" · ")}</p>
    </section>
  );
}

function Facts({ job }: { job: Job }) {
  const rows: [string, string][] = [[t.id, job.id], [t.created, time(job.createdAt)]];
  if (job.startedAt) rows.push([t.started, time(job.startedAt)]);
  if (job.completedAt) rows.push([t.ended, time(job.completedAt)]);
  if (job.startedAt) rows.push([job.completedAt ? t.took : t.soFar, seconds(between(job.startedAt, job.completedAt))]);
  const notes = Object.entries(job.sources ?? {}).flatMap(([source, facts]) => [
    ...(facts.snapshot === false ? [t.noSnapshot(source)] : []),
    ...(facts.replacedCharacters ? [t.replaced(source, count(facts.replacedCharacters))] : []),
  ]);
  return (
    <section class="card">
      <dl class="facts">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      <p><Copy text={job.id} label={t.copyId} /></p>
      {job.resultDeletedAt ? <p>{t.resultGone}: {time(job.resultDeletedAt)}</p> : null}
      {job.rowCount != null && job.sizeBytes != null ? <p><strong>{texts.jobs.result(count(job.rowCount), bytes(job.sizeBytes))}</strong> <span class="faint">{t.exactly(job.sizeBytes)}</span></p> : null}
      {notes.length > 0 ? <><h3>{t.notes}</h3><ul>{notes.map((note) => <li key={note}>{note}</li>)}</ul></> : null}
      {job.resultHmac ? <p class="hint">{t.verify(job.resultHmac)}</p> : null}
    </section>
  );
}

/** The sealed bytes say nothing to who has downloaded them. */
function OpeningCard({ job }: { job: Job }) {
  const { resultPath, resultHmac, sizeBytes } = job;
  return (
    <section class="card" aria-label={t.open}>
      <h2>{t.open}</h2>
      {resultHmac && sizeBytes != null ? <Command text={t.openFileText} command={asOpeningOfFile(sealedName(job), resultHmac, sizeBytes)} /> : null}
      {resultPath ? (
        <>
          <Command text={t.openText} command={asOpening(resultPath)} />
          <p class="hint">{t.storedAs(resultPath)}</p>
        </>
      ) : null}
    </section>
  );
}

function Command({ text, command }: { text: string; command: string }) {
  return (
    <div class="command">
      <p class="hint">{text}</p>
      <pre tabIndex={0} aria-label={text}>{command}</pre>
      <Copy text={command} />
    </div>
  );
}

function ProgressCard({ job }: { job: Job }) {
  const estimates = useEstimates(job);
  const rates = useRates(job);
  const sources = Object.keys(job.mappedFields);
  return (
    <section class="card">
      <h2>{t.progress}</h2>
      {sources.map((source) => {
        const tables = job.progress?.[source] ?? {};
        const rows = Object.values(tables).reduce((sum, each) => sum + each.rows, 0);
        const size = Object.values(tables).reduce((sum, each) => sum + each.bytes, 0);
        const isDone = job.status === "completed";
        const all = estimates[source];
        const most = isDone ? Math.max(rows, 1) : Math.max(all ?? 0, rows);
        const rate = rates[source];
        return (
          <div class="source-progress" key={source}>
            <p><strong>{source}</strong> <span class="faint">{rows === 0 ? (job.status === "completed" ? t.noRows : hasEnded(job) ? t.nothingRead : t.noProgress) : `${t.rows(count(rows), !isDone && all ? count(all) : null)}, ${bytes(size)}`}{rate && !hasEnded(job) ? ` · ${t.rate(count(Math.round(rate)))}` : ""}</span></p>
            {isDone || (all && !hasEnded(job)) || (hasEnded(job) && rows > 0)
              ? <progress aria-label={source} max={isDone || all ? most : rows * 2} value={isDone ? most : rows} />
              : !hasEnded(job) && job.status === "processing" ? <progress aria-label={source} /> : <progress aria-label={source} max={1} value={0} />}
          </div>
        );
      })}
    </section>
  );
}

/** Rows of a source by its database's own guess, for jobs without filters on it: a bar needs an end. */
function useEstimates(job: Job): Record<string, number> {
  const [found, setFound] = useState<Record<string, number>>(copyOf({}));
  const isRunning = job.status === "processing";
  useEffect(() => {
    if (!isRunning) return;
    const ended = new AbortController();
    async function look(): Promise<void> {
      const all = await allConnections(ended.signal);
      for (const [source, tables] of Object.entries(job.mappedFields)) {
        const connection = all.find((each) => each.configName === source);
        if (!connection || job.filters?.[source]) continue;
        const schema = await connections.schema(connection.id, ended.signal);
        const known = new Map(schema.tables.map((each) => [each.name, each.estimatedRows]));
        const rows = Object.keys(tables).map((table) => known.get(table));
        if (rows.every((each): each is number => each != null)) {
          const sum = rows.reduce((left, right) => left + right, 0);
          setFound((before) => Object.assign(copyOf({}), before, { [source]: sum }));
        }
      }
    }
    // the bar does without an end where nobody can tell it
    look().catch(() => undefined);
    return () => ended.abort();
  }, [job.id, isRunning]);
  return found;
}

/** Rows per second of each source between the last two looks that differ. */
function useRates(job: Job): Record<string, number> {
  const last = useRef<{ at: number; rows: Record<string, number> }>({ at: 0, rows: copyOf({}) });
  const [rates, setRates] = useState<Record<string, number>>(copyOf({}));
  const rows: Record<string, number> = copyOf({});
  for (const [source, tables] of Object.entries(job.progress ?? {})) {
    rows[source] = Object.values(tables).reduce((sum, each) => sum + each.rows, 0);
  }
  const key = JSON.stringify(rows);
  useEffect(() => {
    const now = performance.now();
    const { at, rows: before } = last.current;
    if (at > 0) {
      const gone = (now - at) / 1000;
      // another attempt begins at no row
      setRates(copyOf(Object.fromEntries(Object.entries(rows).map(([source, value]) => [source, Math.max(0, value - (before[source] ?? 0)) / gone]))));
    }
    last.current = { at: now, rows };
  }, [key]);
  return rates;
}

function Attempts({ job }: { job: Job }) {
  return (
    <section class="card">
      <h2>{t.attempts}</h2>
      <div class="table-box" tabIndex={0} role="region" aria-label={t.attempts}>
        <table>
          <thead><tr><th scope="col">{t.attempt}</th><th scope="col">{t.started}</th><th scope="col">{t.took}</th><th scope="col">{t.worker}</th><th scope="col">{t.outcome}</th></tr></thead>
          <tbody>
            {(job.attempts ?? []).map((each) => (
              <tr key={each.attempt}>
                <td class="number">{each.attempt}</td>
                <td>{time(each.startedAt)}</td>
                <td class="whole">{seconds(between(each.startedAt, each.endedAt))}</td>
                <td>{each.worker}</td>
                <td title={each.errorCode ?? undefined}>{each.errorCode ? t.endedBy(each.errorCode) : each.endedAt ? texts.jobs.statuses.completed : t.running}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function PreviewCard({ job }: { job: Job }) {
  const [preview, setPreview] = useState<Preview>();
  const [problem, setProblem] = useState<Problem>();
  const offered = useLoaded(showsRows, []);
  async function look(): Promise<void> {
    setProblem(undefined);
    try {
      setPreview(await jobs.preview(job.id, PREVIEW_ROWS));
    } catch (error) {
      setProblem(asProblem(error));
    }
  }
  return (
    <section class="card">
      <div class="page-head">
        <h2>{t.preview}</h2>
        {offered.value ? <Button onClick={look}>{preview ? texts.common.reload : t.preview}</Button> : null}
      </div>
      {offered.value === false ? <p>{t.previewOff}</p> : null}
      {problem?.code === TOO_LARGE ? <Notice kind="warn"><p>{t.previewTooLarge(bytes(job.sizeBytes ?? 0))}</p></Notice> : problem ? <Failed problem={problem} /> : null}
      {preview ? (
        <>
          <p class="hint">{t.previewText}</p>
          {Object.entries(preview.rows).flatMap(([source, tables]) => Object.entries(tables).map(([table, rows]) => (
            <PreviewTable key={`${source}\n${table}`} name={`${source} · ${table}`} rows={rows} all={preview.rowCounts[source]?.[table] ?? rows.length} />
          )))}
        </>
      ) : null}
    </section>
  );
}

function PreviewTable({ name, rows, all }: { name: string; rows: Record<string, unknown>[]; all: number }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const numeric = new Set(columns.filter((column) => rows.every((row) => isNumber(row[column]) || row[column] == null)));
  const alignment = (column: string) => (numeric.has(column) ? "number" : undefined);
  return (
    <>
      <h3>{name} <span class="faint">{t.previewRows(count(rows.length), count(all))}</span></h3>
      {rows.length === 0 ? <p class="faint">{t.noRows}</p> : (
        <div class="table-box preview" tabIndex={0} role="region" aria-label={name}>
          <table>
            <thead><tr>{columns.map((column) => <th scope="col" key={column} class={alignment(column)}>{column}</th>)}</tr></thead>
            <tbody>
              {rows.map((row, index) => <tr key={index}>{columns.map((column) => <td key={column} class={alignment(column)}>{shown(row[column])}</td>)}</tr>)}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || value instanceof ExactNumber;
}

function shown(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : writeJson(value);
}
