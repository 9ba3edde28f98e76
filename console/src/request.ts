// The request for a job while it is being made: one value, changed by clicks and by its JSON alike.
import { signal } from "@preact/signals";
import { copyOf, isObject, membersOf, numberOf, readJson, shapeOf, writeJson, type ExactNumber } from "./api/exact";
import type { Conditions, Filters, JobRequest, MappedFields } from "./api/types";
import type { Kind } from "./kinds";
import { product, visitor } from "./session";
import { texts } from "./texts";

export const draft = signal<JobRequest>(empty());

/** Of what is typed and not read yet: whatever else changes the request changes what it says. */
export const unread = signal<{ read: () => void } | undefined>(undefined);

export function empty(): JobRequest {
  return copyOf({ dataRequest: { mappedFields: {} }, metadata: { source: product.peek() } });
}

/** In place of all that was there, also of what was being typed. */
export function begin(request: JobRequest): void {
  unread.value = undefined;
  draft.value = request;
}

visitor.subscribe(() => begin(empty()));

const e = texts.build.errors;
/** The service refuses what is nested deeper, and the page could not show it. */
const MOST_DEPTH = 64;

/** Reads a request from its JSON. Throws Error with what is wrong. */
export function parseRequest(text: string): JobRequest {
  const { depth, members } = shapeOf(text);
  if (depth > MOST_DEPTH) throw new Error(e.deep(MOST_DEPTH));
  const read = readJson(text);
  // of two members with one name the first would vanish, as if it had not been asked for
  if (members !== membersOf(read)) throw new Error(e.repeated);
  if (!isObject(read) || !isObject(read["dataRequest"]) || !isObject(read["metadata"])) throw new Error(e.object);
  const data = read["dataRequest"];
  const fieldsAreLists = (tables: unknown) =>
    isObject(tables) && Object.values(tables).every((fields) => Array.isArray(fields) && fields.every((field) => typeof field === "string"));
  if (!isObject(data["mappedFields"]) || !Object.values(data["mappedFields"]).every(fieldsAreLists)) throw new Error(e.mapped);
  const filters = data["filters"] ?? {};
  const conditionsAreLists = (conditions: unknown) => isObject(conditions) && Object.values(conditions).every(Array.isArray);
  const fieldsHaveConditions = (fields: unknown) => isObject(fields) && Object.values(fields).every(conditionsAreLists);
  const tablesHaveFields = (tables: unknown) => isObject(tables) && Object.values(tables).every(fieldsHaveConditions);
  if (!isObject(filters) || !Object.values(filters).every(tablesHaveFields)) throw new Error(e.filters);
  return read as unknown as JobRequest;
}

function change(edit: (mapped: MappedFields, filters: Filters) => void): void {
  unread.peek()?.read();
  const next = copyOf(draft.peek());
  const filters: Filters = next.dataRequest.filters ?? copyOf({});
  edit(next.dataRequest.mappedFields, filters);
  for (const source of Object.keys(filters)) {
    const tables = filters[source] ?? {};
    for (const table of Object.keys(tables)) {
      if (!next.dataRequest.mappedFields[source]?.[table] || Object.keys(tables[table] ?? {}).length === 0) delete tables[table];
    }
    if (Object.keys(tables).length === 0) delete filters[source];
  }
  if (Object.keys(filters).length > 0) next.dataRequest.filters = filters;
  else delete next.dataRequest.filters;
  draft.value = next;
}

export function addTable(source: string, table: string, fields: string[]): void {
  change((mapped) => {
    (mapped[source] ??= copyOf<Record<string, string[]>>({}))[table] = fields;
  });
}

export function removeTable(source: string, table: string): void {
  change((mapped) => {
    delete mapped[source]?.[table];
    if (Object.keys(mapped[source] ?? {}).length === 0) delete mapped[source];
  });
}

const clicked = new Map<string, string>();

/** Whether they are as clicks have left them: what was written as JSON is its writer's own. */
export function areClicked(source: string, table: string, field: string, conditions: Conditions): boolean {
  return clicked.get(JSON.stringify([source, table, field])) === writeJson(conditions);
}

export function setConditions(source: string, table: string, field: string, conditions: Conditions): void {
  clicked.set(JSON.stringify([source, table, field]), writeJson(conditions));
  change((_mapped, filters) => {
    const fields = ((filters[source] ??= copyOf<Record<string, Record<string, Conditions>>>({}))[table] ??= copyOf<Record<string, Conditions>>({}));
    if (Object.keys(conditions).length > 0) fields[field] = conditions;
    else delete fields[field];
  });
}

export function setProduct(source: string): void {
  unread.peek()?.read();
  draft.value = copyOf({ ...draft.peek(), metadata: { ...draft.peek().metadata, source } });
}

/** A typed value: the very number of a column of numbers, and a text where it is none yet. */
export function valueOf(text: string, kind: Kind): string | number | boolean | ExactNumber {
  if (kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  return (kind === "number" ? numberOf(text.trim()) : undefined) ?? text;
}

const NEXT_LINE = " \\\n  ";
/** Linux takes 128 KiB of one argument. */
const MOST_OF_AN_ARGUMENT = 100_000;

/** The request as a command for a POSIX shell; a token is never in it. */
export function asCurl(url: string, request: JobRequest, asksForToken: boolean): string {
  const lines = [`curl -sS -X POST ${quoted(url)}`, `-H 'Content-Type: application/json'`];
  if (asksForToken) lines.push(`-H "Authorization: Bearer $FETCHER_TOKEN"`);
  const json = writeJson(request);
  const isArgument = new TextEncoder().encode(json).length < MOST_OF_AN_ARGUMENT;
  // the JSON is one line, so no line of it ends it
  lines.push(isArgument ? `-d ${quoted(json)}` : `--data-binary @- <<'JSON'\n${json}\nJSON`);
  return lines.join(NEXT_LINE);
}

/** What opens a stored result where the service's settings are, for a POSIX shell. */
export function asOpening(path: string): string {
  return [`fetcher open-result ${quoted(path)}`, "--output=result.json"].join(NEXT_LINE);
}

/** What opens a downloaded result, by a consumer's two keys or the service's. */
export function asOpeningOfFile(name: string, hmac: string, size: number): string {
  return [`fetcher open-file ${quoted(name)}`, `--hmac=${quoted(hmac)}`, `--size=${size}`, "--output=result.json"].join(NEXT_LINE);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
