// One way to call the API: with the token, a deadline, and every failure as a Problem.
import { product, token, tokenRefused, tokenWasTaken } from "../session";
import { texts } from "../texts";
import { readJson, writeJson } from "./exact";
import type { Mismatch } from "./types";

const API = new URL("../", document.baseURI);
const SECONDS = 60;
/** All that the service says to who has no right, be it as text or as JSON. */
const BARE_REFUSAL = "Forbidden";

/** Whatever kept an answer from being good. `status` is 0 where there was no answer at all. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    message: string,
    readonly fields: Record<string, string> = {},
    readonly stage: string | null = null,
    readonly reason: string | null = null,
    readonly source: string | null = null,
    readonly mismatches: Mismatch[] = [],
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }

  /** The caller may not: asking again changes nothing. */
  get isRefusal(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

export interface Call {
  body?: unknown;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The answer has numbers of people's data, or names of theirs as its members. */
  exact?: boolean;
  /** Its body may take any time: only the head has a deadline. */
  isLong?: boolean;
  /** Leave X-Product-Name out, where the header would narrow or own something. */
  anyProduct?: boolean;
}

export function address(path: string, query: Call["query"] = {}): string {
  const url = new URL(path.replace(/^\//, ""), API);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

export function headersOf(call: Call): Headers {
  const headers = new Headers({ Accept: "application/json", ...call.headers });
  if (token.value) headers.set("Authorization", `Bearer ${token.value}`);
  if (product.value && !call.anyProduct && !headers.has("X-Product-Name")) {
    headers.set("X-Product-Name", product.value);
  }
  if (call.body !== undefined) headers.set("Content-Type", "application/json");
  return headers;
}

/** The answer itself, if it is a good one; raises Problem. */
export async function send(method: string, path: string, call: Call = {}): Promise<Response> {
  const sent = token.value;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), SECONDS * 1000);
  const init: RequestInit = {
    method,
    headers: headersOf(call),
    signal: call.signal ? AbortSignal.any([call.signal, late.signal]) : late.signal,
    cache: "no-store",
    credentials: "omit",
  };
  if (call.body !== undefined) init.body = writeJson(call.body);
  let answer: Response;
  try {
    answer = await fetch(address(path, call.query), init);
  } catch (error) {
    if (call.signal?.aborted) throw error;
    clearTimeout(timer);
    const isLate = late.signal.aborted;
    const text = isLate ? texts.problem.late(SECONDS) : texts.problem.unreachable;
    throw new Problem(0, isLate ? "late" : "unreachable", texts.problem.noAnswer, text);
  }
  // else it goes on while the body is read
  if (call.isLong) clearTimeout(timer);
  if (answer.ok) {
    // the service's document is there for everybody
    if (path.startsWith("v1/")) tokenWasTaken(sent);
    return answer;
  }
  // of a token that was replaced in the meantime the answer says nothing about the new one
  if (answer.status === 401 && sent === token.value) tokenRefused.value = true;
  throw await problemOf(answer);
}

/** The answer's JSON. */
export async function ask<T>(method: string, path: string, call: Call = {}): Promise<T> {
  const answer = await send(method, path, call);
  return (call.exact ? readJson(await answer.text()) : await answer.json()) as T;
}

interface ProblemBody {
  title?: string;
  message?: string;
  errorCode?: string;
  fields?: Record<string, string> | null;
  stage?: string | null;
  reason?: string | null;
  source?: string | null;
  errors?: Mismatch[];
}

async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text();
  let body: ProblemBody = {};
  try {
    const read: unknown = JSON.parse(text);
    if (read !== null && typeof read === "object") body = read;
  } catch {
    body = { message: text.slice(0, 300) };
  }
  if (answer.status === 403 && body.message === BARE_REFUSAL) body.message = texts.problem.forbidden;
  const retryAfter = Number(answer.headers.get("Retry-After"));
  return new Problem(
    answer.status,
    body.errorCode ?? String(answer.status),
    body.title ?? texts.problem.refused,
    body.message || texts.problem.status(answer.status),
    body.fields ?? {},
    body.stage ?? null,
    body.reason ?? null,
    body.source ?? null,
    body.errors ?? [],
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null,
  );
}

/** What to show of anything that was thrown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Problem(0, "page", texts.problem.page, message);
}
