// The list of jobs: as long as it is, live by the stream of ended jobs and by looking again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/http";
import { jobs, type JobQuery } from "../api/operations";
import { follow, type StreamEvent } from "../api/stream";
import type { EndedJob, JobPage, JobStatus, JobSummary } from "../api/types";
import { isActive, leavesGap, renewed, withAgain, withEnded, without } from "../job-rows";
import { go, href, place, replaceQuery } from "../router";
import { product, token } from "../session";
import { texts } from "../texts";
import { ago, beginOf, between, bytes, count, seconds, time } from "../ui/format";
import { Badge, Button, Empty, Failed, Field, Loading, SettledInput, type Tone } from "../ui/parts";
import { Rows } from "../ui/rows";

const t = texts.jobs;
const ROW_HEIGHT = 62;
/** New and running jobs are no events; the newest page is looked at again this often. */
const LOOK_MS = 3000;
/** That an older job was begun is told by no event. */
const LOOK_AT_OLDER_MS = 30_000;
/** Where more jobs have come since the last look, the list begins anew. */
const MOST_BETWEEN = 500;
const STATUSES: JobStatus[] = ["pending", "processing", "completed", "failed", "cancelled"];
export const TONES: Record<JobStatus, Tone> = { pending: "idle", processing: "busy", completed: "good", failed: "bad", cancelled: "warn" };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILTERS = ["status", "source", "connection", "startDate", "endDate"] as const;

export function JobsPage() {
  const query = place.value.query;
  const filters: JobQuery = {};
  for (const name of FILTERS) {
    const value = query.get(name);
    if (value) filters[name] = value;
  }
  const key = JSON.stringify(filters);
  const list = useJobs(filters, key);

  function choose(name: (typeof FILTERS)[number], value: string): void {
    replaceQuery({ ...filters, [name]: value } as Record<string, string>);
  }

  const input = (name: (typeof FILTERS)[number], label: string, isDate = false) => (
    <Field label={label}>
      {(ids) => <SettledInput ids={ids} type={isDate ? "date" : "search"} value={filters[name] ?? ""} onSettled={(value) => choose(name, value.trim())} />}
    </Field>
  );

  return (
    <>
      <div class="page-head">
        <h1>{t.title}</h1>
        <span role="status"><Badge tone={list.live ? "good" : "warn"}>{list.live ? t.live : t.notLive}</Badge></span>
        <a class="button primary" href={href(["build"])}>{texts.app.build}</a>
      </div>
      <div class="filters">
        <Field label={t.status}>
          {(ids) => (
            <select {...ids} value={filters.status ?? ""} onChange={(event) => choose("status", event.currentTarget.value)}>
              <option value="">{texts.common.all}</option>
              {STATUSES.map((each) => <option key={each} value={each}>{t.statuses[each]}</option>)}
            </select>
          )}
        </Field>
        {input("source", t.source)}
        {input("connection", t.connection)}
        {input("startDate", t.from, true)}
        {input("endDate", t.until, true)}
        <FindJob listed={list.items} />
      </div>
      {list.problem ? <Failed problem={list.problem}><Button onClick={list.reload}>{texts.common.reload}</Button></Failed> : null}
      {list.items.length > 0 ? (
        <>
          <p class="faint">{t.count(list.items.length, list.more)}</p>
          <Rows items={list.items} rowHeight={ROW_HEIGHT} label={t.title} keyOf={(job) => job.id} onEnd={list.more ? list.next : undefined}>
            {(job) => <JobRow job={job} />}
          </Rows>
        </>
      ) : list.loading ? <Loading /> : list.problem ? null : <Empty title={t.empty}><p>{t.emptyText}</p></Empty>}
    </>
  );
}

/** The list shows the ends of ids; logs and events have whole ones. */
function FindJob({ listed }: { listed: JobSummary[] }) {
  const [wrong, setWrong] = useState(false);
  function find(text: string): void {
    const wanted = text.trim().toLowerCase();
    const found = UUID.test(wanted) ? wanted : wanted && listed.find((job) => job.id.endsWith(wanted))?.id;
    setWrong(wanted !== "" && !found);
    if (found) go(["jobs", found]);
  }
  return (
    <Field label={t.find} error={wrong ? t.noId : undefined}>
      {(ids) => <SettledInput ids={ids} type="search" value="" onSettled={find} />}
    </Field>
  );
}

function JobRow({ job }: { job: JobSummary }) {
  const news =
    job.error ? job.error.message
    : job.waitingReason ? job.waitingReason
    : job.cancelRequestedAt && job.status === "processing" ? t.cancelling
    : job.rowCount != null && job.sizeBytes != null ? t.result(count(job.rowCount), bytes(job.sizeBytes))
    : "";
  return (
    <a href={href(["jobs", job.id])}>
      <span class="job-status"><Badge tone={TONES[job.status]}>{t.statuses[job.status]}</Badge></span>
      <span class="grow two-lines">
        <span><strong>{job.connections.join(", ")}</strong>{job.source ? ` · ${job.source}` : ""} <span class="faint small" title={job.id}>{texts.job.short(job.id)}</span></span>
        <span class="faint">{news}</span>
      </span>
      <span class="faint number" title={time(job.createdAt)}>
        {ago(job.createdAt)}{job.startedAt ? <><br />{seconds(between(job.startedAt, job.completedAt))}</> : null}
      </span>
    </a>
  );
}

interface JobList {
  items: JobSummary[];
  more: boolean;
  live: boolean;
  loading: boolean;
  problem: Problem | undefined;
  next: () => void;
  reload: () => void;
}

function useJobs(chosen: JobQuery, key: string): JobList {
  const filters = { ...chosen };
  for (const name of ["startDate", "endDate"] as const) if (chosen[name]) filters[name] = beginOf(chosen[name]);
  const [items, setItems] = useState<JobSummary[]>([]);
  const [cursor, setCursor] = useState<string | null>();
  const [live, setLive] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [loading, setLoading] = useState(true);
  const [turn, setTurn] = useState(0);
  const busy = useRef(false);
  const shown = useRef(items);
  shown.current = items;
  const tail = useRef(cursor);
  tail.current = cursor;
  const reader = useRef(new AbortController());
  const whose = [key, product.value, token.value, turn] as const;

  useEffect(() => {
    const ended = new AbortController();
    reader.current = ended;
    busy.current = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    let newest: JobSummary[] = [];
    let lookedAtOlder = performance.now();
    setItems([]);
    setCursor(undefined);
    setLoading(true);

    // one look at a time: an answer that is older than the rows would put a gap between them
    let isLooking = false;
    let isAsked = false;
    async function look(): Promise<void> {
      if (isLooking) {
        isAsked = true;
        return;
      }
      isLooking = true;
      isAsked = false;
      clearTimeout(timer);
      const goesOn = await lookOnce();
      isLooking = false;
      if (!goesOn || ended.signal.aborted) return;
      if (isAsked) soon();
      else timer = setTimeout(again, LOOK_MS);
    }

    /** Whether to look again. */
    async function lookOnce(): Promise<boolean> {
      try {
        const page = await joined(await jobs.list(filters, ended.signal));
        setProblem(undefined);
        newest = page.items;
        if (isFirst || leavesGap(page, shown.current)) {
          isFirst = false;
          setItems(page.items);
          setCursor(page.nextCursor ?? null);
        } else {
          setItems((old) => renewed(page, old));
          if (performance.now() - lookedAtOlder > LOOK_AT_OLDER_MS) await lookAtOlder();
        }
      } catch (error) {
        if (ended.signal.aborted) return false;
        const found = asProblem(error);
        setProblem(found);
        setLoading(false);
        return !found.isRefusal;
      }
      setLoading(false);
      return true;
    }

    /** The newest page with those behind it, down to what is shown: nobody looks while the page is hidden. */
    async function joined(page: JobPage): Promise<JobPage> {
      let whole = page;
      while (!isFirst && whole.nextCursor && leavesGap(whole, shown.current) && whole.items.length < MOST_BETWEEN) {
        const { items, nextCursor } = await jobs.list({ ...filters, cursor: whole.nextCursor }, ended.signal);
        whole = { ...page, items: [...whole.items, ...without(items, whole.items)], nextCursor: nextCursor ?? null };
      }
      return whole;
    }

    function again(): void {
      if (ended.signal.aborted) return;
      if (document.visibilityState === "visible") void look();
      else document.addEventListener("visibilitychange", again, { once: true, signal: ended.signal });
    }

    // several jobs that end together are one look
    let isDue = false;
    function soon(): void {
      if (isDue) return;
      isDue = true;
      setTimeout(() => {
        isDue = false;
        again();
      }, 300);
    }

    function end(event: StreamEvent): void {
      const job = JSON.parse(event.data) as EndedJob;
      setItems((old) => withEnded(old, job, filters.status));
      soon();
    }

    // endings from while the stream did not stand are told by nobody: it goes on behind the last
    // event that was seen, and where there was none, from now on
    function stand(isLive: boolean): void {
      setLive(isLive);
      if (isLive) lookAtOlder().catch(() => undefined);
    }

    /** Reads again as many pages as are shown, if one of the older jobs may have gone on. */
    async function lookAtOlder(): Promise<void> {
      lookedAtOlder = performance.now();
      const older = without(shown.current, newest);
      const oldest = older.at(-1)?.createdAt;
      if (oldest === undefined || !older.some(isActive)) return;
      const found: JobSummary[] = [];
      let next: string | null | undefined;
      do {
        const page = await jobs.list(next ? { ...filters, cursor: next } : filters, ended.signal);
        found.push(...page.items);
        next = page.nextCursor;
      } while (next && (found.at(-1)?.createdAt ?? "") >= oldest);
      setItems((old) => withAgain(old, older, found));
    }

    void look();
    void follow("v1/fetcher/events", end, stand, ended.signal);
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, whose);

  const next = useCallback(() => {
    if (!cursor || busy.current) return;
    // a page of what is no longer asked for is none of the new list
    const { signal } = reader.current;
    busy.current = true;
    jobs.list({ ...filters, cursor }, signal)
      .then((page) => {
        // where the list has begun anew, there is something between its end and this page
        if (signal.aborted || tail.current !== cursor) return;
        setItems((old) => [...old, ...without(page.items, old)]);
        setCursor(page.nextCursor ?? null);
      })
      .catch((error: unknown) => {
        if (!signal.aborted) setProblem(asProblem(error));
      })
      .finally(() => {
        if (!signal.aborted) busy.current = false;
      });
  }, [cursor, key]);

  return { items, more: Boolean(cursor), live, loading, problem, next, reload: () => setTurn((count) => count + 1) };
}
