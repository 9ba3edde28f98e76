// Server-sent events (HTML standard, section 9.2) over fetch: EventSource sends no token.
import { address, headersOf, Problem } from "./http";

export interface StreamEvent {
  id: string;
  type: string;
  data: string;
}

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
/** The server comments every 15 s; a stream without anything for longer is dead. */
const SILENCE = 45_000;

/**
 * Calls `onEvent` for each event until `signal` aborts; a stream that ends is opened again behind
 * the last event seen, unless the caller is refused. `onState` hears whether it stands.
 */
export async function follow(
  path: string,
  onEvent: (event: StreamEvent) => void,
  onState: (live: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = "";
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      await once(path, last, signal, (event) => {
        if (event.id) last = event.id;
        onEvent(event);
      }, () => {
        wait = FIRST_WAIT;
        onState(true);
      });
    } catch (error) {
      if (error instanceof Problem && error.isRefusal) {
        onState(false);
        return;
      }
      // whatever else it was, the stream is opened again below
    }
    onState(false);
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function once(
  path: string,
  last: string,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
  onOpen: () => void,
): Promise<void> {
  const quiet = new AbortController();
  const both = AbortSignal.any([signal, quiet.signal]);
  let timer = setTimeout(() => quiet.abort(), SILENCE);
  try {
    const extra: Record<string, string> = { Accept: "text/event-stream" };
    if (last) extra["Last-Event-ID"] = last;
    const answer = await fetch(address(path), {
      headers: headersOf({ headers: extra }), signal: both, cache: "no-store", credentials: "omit",
    });
    if (!answer.ok || !answer.body) throw new Problem(answer.status, "stream", "", "");
    onOpen();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser(onEvent);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), SILENCE);
      parser.push(value);
    }
  } finally {
    clearTimeout(timer);
  }
}

class EventParser {
  private rest = "";
  private id = "";
  private type = "";
  private data: string[] = [];

  constructor(private readonly onEvent: (event: StreamEvent) => void) {}

  push(text: string): void {
    this.rest += text;
    const lines = this.rest.split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.replace(/\r$/, ""));
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) {
        this.onEvent({ id: this.id, type: this.type || "message", data: this.data.join("\n") });
      }
      this.type = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.id = value;
    else if (name === "event") this.type = value;
    else if (name === "data") this.data.push(value);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
