// One function an operation of the API.
import { mostItems } from "./document";
import { ask, Problem, send } from "./http";
import type {
  ActivityMinute, Actors, AuditPage, Breakers, Connection, ConnectionInput, ConnectionPage, CreatedJob,
  DeadLetters, Dependencies, Job, JobPage, JobRequest, OperatedJobs, Outbox, Preview, Queues, Reached,
  Redriven, Schema, ValidJob,
} from "./types";

const CONNECTIONS = "v1/management/connections";
const JOBS = "v1/fetcher";
const OPERATIONS = "v1/operations";
const part = encodeURIComponent;

/** Runs `read` with the largest page: the service may be told to allow less than is usual. */
let page = 100;
async function paged<T>(read: (limit: number) => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await read(page);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== LIMIT_EXCEEDED) throw error;
    page = await mostItems(signal);
    return await read(page);
  }
}
const LIMIT_EXCEEDED = "FET-0406";

export const connections = {
  /** A page from 1 on; `total` tells how many there are. */
  list: (number: number, signal?: AbortSignal) =>
    paged((limit) => ask<ConnectionPage>("GET", CONNECTIONS, { query: { page: number, limit, sortOrder: "desc" }, ...given(signal) }), signal),
  /** Those that belong to no product, in the same pages. */
  unassigned: (number: number, signal?: AbortSignal) =>
    paged((limit) => ask<ConnectionPage>("GET", `${CONNECTIONS}/unassigned`, { query: { page: number, limit }, ...given(signal) }), signal),
  assign: (id: string, product: string) =>
    ask<Connection>("POST", `${CONNECTIONS}/${part(id)}/assign`, { headers: { "X-Product-Name": product } }),
  get: (id: string, signal?: AbortSignal) =>
    ask<Connection>("GET", `${CONNECTIONS}/${part(id)}`, { exact: true, ...given(signal) }),
  create: (input: ConnectionInput, product: string) =>
    ask<Connection>("POST", CONNECTIONS, { body: input, headers: { "X-Product-Name": product } }),
  change: (id: string, input: ConnectionInput) =>
    ask<Connection>("PATCH", `${CONNECTIONS}/${part(id)}`, { body: input }),
  remove: (id: string) => send("DELETE", `${CONNECTIONS}/${part(id)}`),
  test: (id: string) => ask<Reached>("POST", `${CONNECTIONS}/${part(id)}/test`),
  schema: (id: string, signal?: AbortSignal) =>
    ask<Schema>("GET", `${CONNECTIONS}/${part(id)}/schema`, { query: { details: "true" }, ...given(signal) }),
};

export interface JobQuery {
  status?: string;
  source?: string;
  connection?: string;
  startDate?: string;
  endDate?: string;
  cursor?: string;
}

export const jobs = {
  list: (query: JobQuery, signal?: AbortSignal) =>
    paged((limit) => ask<JobPage>("GET", JOBS, { query: { limit, ...query }, ...given(signal) }), signal),
  get: (id: string, signal?: AbortSignal) => ask<Job>("GET", `${JOBS}/${part(id)}`, { exact: true, ...given(signal) }),
  validate: (request: unknown, signal?: AbortSignal) =>
    ask<ValidJob>("POST", `${JOBS}/validate`, { body: request, ...given(signal) }),
  create: (request: JobRequest | unknown, idempotencyKey: string) =>
    ask<CreatedJob>("POST", JOBS, { body: request, headers: { "Idempotency-Key": idempotencyKey } }),
  cancel: (id: string) => send("POST", `${JOBS}/${part(id)}/cancel`),
  rerun: (id: string) => ask<CreatedJob>("POST", `${JOBS}/${part(id)}/rerun`),
  result: (id: string) =>
    // by the manager in any case: the page's policy lets it reach no bucket
    send("GET", `${JOBS}/${part(id)}/result`, {
      query: { redirect: "false" }, headers: { Accept: "application/octet-stream" }, isLong: true,
    }),
  preview: (id: string, rows: number, signal?: AbortSignal) =>
    ask<Preview>("GET", `${JOBS}/${part(id)}/result/preview`, { query: { rows }, exact: true, ...given(signal) }),
};

export const operations = {
  dependencies: (signal?: AbortSignal) =>
    ask<Dependencies>("GET", `${OPERATIONS}/dependencies`, given(signal)),
  queues: (signal?: AbortSignal) => ask<Queues>("GET", `${OPERATIONS}/queues`, given(signal)),
  outbox: (signal?: AbortSignal) => ask<Outbox>("GET", `${OPERATIONS}/outbox`, given(signal)),
  jobs: (limit: number, signal?: AbortSignal) =>
    ask<OperatedJobs>("GET", `${OPERATIONS}/jobs`, { query: { limit }, ...given(signal) }),
  activity: (signal?: AbortSignal) =>
    ask<{ minutes: ActivityMinute[] }>("GET", `${OPERATIONS}/activity`, given(signal)),
  breakers: (signal?: AbortSignal) => ask<Breakers>("GET", `${OPERATIONS}/breakers`, given(signal)),
  actors: (signal?: AbortSignal) => ask<Actors>("GET", `${OPERATIONS}/actors`, given(signal)),
  deadLetters: (query: { limit: number; reason?: string }, signal?: AbortSignal) =>
    ask<DeadLetters>("GET", `${OPERATIONS}/dead-letters`, { query, ...given(signal) }),
  redrive: (body: { reason?: string; limit?: number }) =>
    ask<Redriven>("POST", `${OPERATIONS}/dead-letters/redrive`, { body }),
  audit: (query: { actor?: string; action?: string; target?: string; limit?: number; cursor?: string }, signal?: AbortSignal) =>
    ask<AuditPage>("GET", `${OPERATIONS}/audit`, { query, ...given(signal) }),
};

function given(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}
