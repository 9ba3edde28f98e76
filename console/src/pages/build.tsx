// The job builder: sources on the left, what is asked for in the middle, its JSON beside it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ceilings, type Ceilings } from "../api/document";
import { copyOf, readJson, writeJson } from "../api/exact";
import { address, asProblem, type Problem } from "../api/http";
import { connections, jobs } from "../api/operations";
import type { Connection, Filters, JobRequest, Mismatch, Schema, Table, ValidJob } from "../api/types";
import { mayFit, type Kind } from "../kinds";
import { addTable, areClicked, asCurl, begin, draft, empty, parseRequest, removeTable, setProduct, unread } from "../request";
import { go, href, place } from "../router";
import { product, token } from "../session";
import { texts } from "../texts";
import { count } from "../ui/format";
import { useLoaded, useShown } from "../ui/load";
import { Button, Copy, Empty, Failed, Field, Loading, Notice } from "../ui/parts";
import { Rows } from "../ui/rows";
import { tell } from "../ui/toasts";
import { allConnections, MostConnections } from "./connections";
import { hasWords, search } from "./schema";
import { ChosenTable, kindsOf } from "./chosen-table";

const t = texts.build;
const ROW_HEIGHT = 40;
/** A connection of the job belongs to no product. */
const NOT_ASSIGNED = "FET-1014";
/** Of the connections so many are listed at once, besides those that are open or asked. */
const MOST_LISTED = 12;
/** A request of so many characters takes its time to read: it is read when its writer pauses. */
const LARGE = 100_000;
const PAUSE_MS = 400;

export function BuildPage() {
  const list = useLoaded((abort) => allConnections(abort), [product.value]);
  const limits = useLoaded((abort) => ceilings(abort), []);
  const [schemas, setSchemas] = useState<Record<string, Schema>>(copyOf({}));
  const { dataRequest, metadata } = draft.value;
  const sources = Object.keys(dataRequest.mappedFields);
  const query = place.value.query;
  const wanted = query.get("source") ?? "";
  const wantedTable = query.get("table") ?? "";
  const [open, setOpen] = useState(wanted);
  useEffect(() => setOpen(wanted), [wanted]);
  const databaseOf = (source: string) => schemas[source]?.type ?? list.value?.find((each) => each.configName === source)?.type;
  const tableOf = (source: string, table: string) => schemas[source]?.tables.find((each) => each.name === table);
  const named = metadata["source"] ?? "";
  const lacksProduct = sources.length > 0 && typeof named === "string" && named.trim() === "";
  const wrongFilters = fieldsOfWrong(dataRequest.filters ?? {}, (source, table) => kindsOf(tableOf(source, table), databaseOf(source)));
  const keep = (schema: Schema) => setSchemas((all) => Object.assign(copyOf({}), all, { [schema.configName]: schema }));

  // schemas of what is asked for already, for the types of its fields
  const missing = sources.filter((source) => !schemas[source] && source !== open).join("\n");
  useEffect(() => {
    const ended = new AbortController();
    for (const source of missing.split("\n").filter(Boolean)) {
      const found = list.value?.find((each) => each.configName === source);
      if (found) connections.schema(found.id, ended.signal).then(keep, () => undefined);
    }
    return () => ended.abort();
  }, [missing, list.value]);

  const arrived = schemas[wanted];
  useEffect(() => {
    const table = arrived?.tables.find((each) => each.name === wantedTable);
    readNow();
    if (!table || draft.peek().dataRequest.mappedFields[wanted]?.[table.name]) return;
    addTable(wanted, table.name, startFields(table.fields, limits.value));
    const owner = list.value?.find((each) => each.configName === wanted)?.productName;
    if (!draft.peek().metadata["source"] && owner) setProduct(owner);
  }, [arrived, wantedTable]);

  return (
    <>
      <div class="page-head">
        <h1>{t.title}</h1>
        <Button onClick={() => begin(empty())}>{t.clear}</Button>
      </div>
      <div class="builder">
        <section class="card" aria-label={t.sources}>
          <h2>{t.sources}</h2>
          <LimitLine used={sources.length} most={limits.value?.maxDatasources} what={t.limitSources} />
          {list.problem ? <Failed problem={list.problem} /> : null}
          {list.value ? (
            <SourceList connections={list.value} open={open} onOpen={setOpen} onSchema={keep} schemas={schemas} limits={limits.value} />
          ) : list.loading ? <Loading /> : null}
        </section>
        <section aria-label={t.chosen}>
          <div class="card">
            <h2>{t.chosen}</h2>
            <Field label={t.product} hint={t.productHint} error={lacksProduct ? texts.form.errors.required : undefined} required>
              {(ids) => <input {...ids} value={String(metadata["source"] ?? "")} onInput={(event) => setProduct(event.currentTarget.value)} />}
            </Field>
          </div>
          {sources.length === 0 ? <Empty title={t.nothing}><p>{t.nothingText}</p></Empty> : null}
          {sources.flatMap((source) => Object.entries(dataRequest.mappedFields[source] ?? {}).map(([table, fields]) => (
            <ChosenTable
              key={`${source}\n${table}`}
              source={source}
              database={databaseOf(source)}
              table={table}
              fields={fields}
              known={tableOf(source, table)}
              most={limits.value?.maxFieldsPerTable}
            />
          )))}
        </section>
        <RequestPanel ready={sources.length > 0 && !lacksProduct} wrongFilters={wrongFilters} />
      </div>
    </>
  );
}

/** The fields whose filters, made by clicking, are sure to make the job fail. */
function fieldsOfWrong(filters: Filters, kindsIn: (source: string, table: string) => (field: string) => Kind): string[] {
  return Object.entries(filters).flatMap(([source, tables]) => Object.entries(tables).flatMap(([table, fields]) => {
    const kindOfField = kindsIn(source, table);
    return Object.entries(fields)
      .filter(([field, conditions]) => areClicked(source, table, field, conditions) && !Object.values(conditions).every((values) => mayFit(values, kindOfField(field))))
      .map(([field]) => field);
  }));
}

export function LimitLine({ used, most, what }: { used: number; most: number | undefined; what: string }) {
  if (most === undefined) return null;
  const full = used >= most;
  return <p class={used > most ? "error" : "faint"} role="status">{t.limits(used, most, what)}{full ? ` · ${t.full}` : ""}</p>;
}

interface SourceListProps {
  connections: Connection[];
  open: string;
  onOpen: (source: string) => void;
  onSchema: (schema: Schema) => void;
  schemas: Record<string, Schema>;
  limits: Ceilings | undefined;
}

function SourceList({ connections: all, open, onOpen, onSchema, schemas, limits }: SourceListProps) {
  const [words, setWords] = useState("");
  const [isWhole, setIsWhole] = useState(false);
  const asked = draft.value.dataRequest.mappedFields;
  const found = all.filter((each) => hasWords(each.configName, words) || each.configName === open);
  const shown = isWhole ? found : found.filter((each, index) => index < MOST_LISTED || each.configName === open || each.configName in asked);
  if (all.length === 0) return <Empty title={t.noSources} />;
  return (
    <>
      {all.length > 5 ? (
        <Field label={t.searchSources}>
          {(ids) => <input {...ids} type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />}
        </Field>
      ) : null}
      <ul class="sources">
        {shown.map((each) => (
          <li key={each.id}>
            <button type="button" class="source" aria-expanded={each.configName === open} onClick={() => onOpen(each.configName === open ? "" : each.configName)}>
              <span class="grow">{each.configName}</span><span class="faint">{each.type}</span>
            </button>
            {each.configName === open ? <TableList connection={each} schema={schemas[open]} onSchema={onSchema} limits={limits} /> : null}
          </li>
        ))}
      </ul>
      <MostConnections listed={all.length} />
      {shown.length < found.length ? <Button onClick={() => setIsWhole(true)}>{t.moreSources(found.length - shown.length)}</Button> : null}
    </>
  );
}

function TableList({ connection, schema: known, onSchema, limits }: { connection: Connection; schema: Schema | undefined; onSchema: (schema: Schema) => void; limits: Ceilings | undefined }) {
  const { configName, id } = connection;
  const [words, setWords] = useState("");
  const loaded = useLoaded((abort) => (known ? Promise.resolve(known) : connections.schema(id, abort)), [id]);
  const schema = known ?? loaded.value;
  useEffect(() => {
    if (loaded.value) onSchema(loaded.value);
  }, [loaded.value]);
  const found = useMemo(() => (schema ? search(schema.tables, words) : []), [schema, words]);
  const mapped = draft.value.dataRequest.mappedFields;
  const chosen: Record<string, string[]> = mapped[configName] ?? copyOf({});
  const used = Object.keys(chosen).length;
  const noTable = limits !== undefined && used >= limits.maxTablesPerDatasource;
  const noSource = limits !== undefined && used === 0 && Object.keys(mapped).length >= limits.maxDatasources;
  function add(table: Table): void {
    addTable(configName, table.name, startFields(table.fields, limits));
    if (!draft.peek().metadata["source"] && connection.productName) setProduct(connection.productName);
  }

  if (!schema) return loaded.problem ? <Failed problem={loaded.problem}><Button onClick={loaded.reload}>{texts.common.reload}</Button></Failed> : <Loading />;
  return (
    <div class="source-tables">
      <LimitLine used={used} most={limits?.maxTablesPerDatasource} what={t.limitTables} />
      <Field label={texts.schema.searchTables}>
        {(ids) => <input {...ids} type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />}
      </Field>
      <p class="faint" role="status">{texts.schema.tables(found.length, schema.tables.length)}</p>
      {found.length > 0 ? (
        <Rows items={found} rowHeight={ROW_HEIGHT} label={texts.schema.tables(found.length, schema.tables.length)} keyOf={(each) => each.name} class="short">
          {(each) => {
            const isChosen = chosen[each.name] !== undefined;
            return (
              <label class="row-check">
                <input
                  type="checkbox"
                  checked={isChosen}
                  disabled={!isChosen && (noTable || noSource)}
                  onChange={() => (isChosen ? removeTable(configName, each.name) : add(each))}
                />
                <span class="grow">{each.name}</span>
                <span class="faint">{each.fields.length}</span>
              </label>
            );
          }}
        </Rows>
      ) : <Empty title={texts.schema.noMatch} />}
    </div>
  );
}

function startFields(fields: string[], limits: Ceilings | undefined): string[] {
  return limits && fields.length > limits.maxFieldsPerTable ? fields.slice(0, limits.maxFieldsPerTable) : ["*"];
}

function RequestPanel({ ready, wrongFilters }: { ready: boolean; wrongFilters: string[] }) {
  const request = draft.value;
  const written = useMemo(() => writeJson(request, 2), [request]);
  const [text, setText] = useState(written);
  const [wrong, setWrong] = useState("");
  const typed = useRef<JobRequest>(request);
  const [valid, setValid] = useState<ValidJob>();
  const [problem, setProblem] = useState<Problem>();
  const key = useMemo(() => randomKey(), [written]);
  const isShown = useShown();
  const latest = useRef(written);
  latest.current = written;

  useEffect(() => {
    setValid(undefined);
    setProblem(undefined);
  }, [written]);
  useEffect(() => {
    // what is being typed is kept as it is, as long as it means the same
    if (request === typed.current || sameRequest(text, written)) return;
    setText(written);
    setWrong("");
  }, [request]);
  useEffect(() => readNow, []);

  function edit(next: string): void {
    setText(next);
    if (next.length <= LARGE) {
      read(next);
      return;
    }
    const typing = { read: () => read(next) };
    unread.value = typing;
    setTimeout(() => { if (unread.peek() === typing) typing.read(); }, PAUSE_MS);
  }

  function read(next: string): void {
    unread.value = undefined;
    try {
      draft.value = typed.current = parseRequest(next);
      setWrong("");
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  }

  /** What is said of a request that has been changed since is said of nothing. */
  function tellOf<T>(asked: string, set: (value: T) => void, value: T): void {
    if (asked === latest.current) set(value);
  }

  async function check(): Promise<void> {
    setValid(undefined);
    setProblem(undefined);
    try {
      tellOf(written, setValid, await jobs.validate(request));
    } catch (error) {
      tellOf(written, setProblem, asProblem(error));
    }
  }

  async function run(): Promise<void> {
    setProblem(undefined);
    try {
      const made = await jobs.create(request, key);
      tell(made.status === "pending" ? t.started : t.repeated);
      if (isShown.current) go(["jobs", made.jobId]);
    } catch (error) {
      tellOf(written, setProblem, asProblem(error));
    }
  }

  const off = !ready || wrong !== "" || unread.value !== undefined || wrongFilters.length > 0;
  return (
    <section class="card" aria-label={t.runTitle}>
      <h2>{t.runTitle}</h2>
      <div class="actions">
        <Button kind="primary" disabled={off} onClick={run}>{t.run}</Button>
        <Button disabled={off} onClick={check}>{t.validate}</Button>
        <Copy text={() => asCurl(address("v1/fetcher"), request, token.value !== "")} label={t.curl} />
      </div>
      {wrongFilters.length > 0 ? <p class="error" role="status">{t.wrongFilters(wrongFilters.join(", "))}</p> : null}
      {problem ? (
        <Failed problem={problem}>
          {problem.mismatches.length > 0 ? <Mismatches found={problem.mismatches} /> : null}
          {problem.code === NOT_ASSIGNED ? <p><a href={href(["connections"])}>{t.notAssigned}</a></p> : null}
        </Failed>
      ) : null}
      {valid ? <Valid job={valid} /> : null}
      <Field label={t.json} hint={t.jsonHint} error={wrong ? t.jsonWrong(wrong) : undefined}>
        {(ids) => <textarea {...ids} class="code request" spellcheck={false} value={text} onInput={(event) => edit(event.currentTarget.value)} onBlur={readNow} />}
      </Field>
    </section>
  );
}

function readNow(): void {
  unread.peek()?.read();
}

function sameRequest(text: string, written: string): boolean {
  try {
    return writeJson(readJson(text)) === writeJson(readJson(written));
  } catch {
    return false;
  }
}

function Mismatches({ found }: { found: Mismatch[] }) {
  return (
    <ul>
      {found.map((each) => (
        <li key={[each.dataSourceId, each.table, each.field, each.type].join("\n")}>
          <code>{[each.dataSourceId, each.table, each.field].filter(Boolean).join(" · ")}</code>: {t.mismatch[each.type] ?? each.type}
          {each.candidates?.length ? `, ${t.candidates(each.candidates.join(", "))}` : ""}
          {each.stage ? `. ${texts.failures.advice(each.stage, each.reason)}` : ""}
        </li>
      ))}
    </ul>
  );
}

function Valid({ job }: { job: ValidJob }) {
  const estimates = Object.entries(job.sources).flatMap(([source, { tables }]) =>
    Object.entries(tables)
      .filter(([, facts]) => facts.estimatedRows != null)
      .map(([table, facts]) => t.estimate(`${source} · ${table}`, count(facts.estimatedRows ?? 0))));
  return (
    <Notice kind="good">
      <p>{t.valid}</p>
      {estimates.length > 0 ? <ul>{estimates.map((text) => <li key={text}>{text}</li>)}</ul> : null}
    </Notice>
  );
}

// crypto.randomUUID is there in secure contexts alone.
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
