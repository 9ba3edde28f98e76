// JSON without the loss of a number: one that a double would change keeps its text.

/** A number as its JSON wrote it, where reading it as a double and writing that would change it. */
export class ExactNumber {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

const MARK = "\u0000exact";
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number that `text` is in JSON, or undefined. */
export function numberOf(text: string): number | ExactNumber | undefined {
  if (!NUMBER.test(text)) return undefined;
  return String(Number(text)) === text ? Number(text) : new ExactNumber(text);
}

/**
 * What the JSON says. Objects have no prototype: a name such as "constructor" is in them where the
 * JSON has it, and nowhere else. Throws SyntaxError of the text as it is.
 */
export function readJson(text: string): unknown {
  JSON.parse(text);
  return JSON.parse(marked(text), (_name, value: unknown) => {
    if (!isObject(value)) return value;
    const exact = value[MARK];
    if (typeof exact === "string" && NUMBER.test(exact)) return new ExactNumber(exact);
    return bare(value);
  });
}

/** The JSON with an object of one marked text for each number that a double would change. */
function marked(text: string): string {
  const begins = /"|-?\d[\d.eE+-]*/g;
  const parts: string[] = [];
  let written = 0;
  for (let found = begins.exec(text); found; found = begins.exec(text)) {
    const [token] = found;
    if (token === '"') begins.lastIndex = endOfString(text, begins.lastIndex);
    else if (String(Number(token)) !== token) {
      parts.push(text.slice(written, found.index), `{${JSON.stringify(MARK)}:"${token}"}`);
      written = begins.lastIndex;
    }
  }
  return parts.join("") + text.slice(written);
}

/**
 * How deep the JSON goes, and how many members its objects are given, those of one name too.
 * Throws SyntaxError of what is none.
 */
export function shapeOf(text: string): { depth: number; members: number } {
  JSON.parse(text);
  const marks = /["[\]{}:]/g;
  let [depth, deepest, members] = [0, 0, 0];
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const [mark] = found;
    if (mark === '"') marks.lastIndex = endOfString(text, marks.lastIndex);
    else if (mark === ":") members += 1;
    else if (mark === "[" || mark === "{") deepest = Math.max(deepest, (depth += 1));
    else depth -= 1;
  }
  return { depth: deepest, members };
}

/** How many members the objects in a value have. */
export function membersOf(value: unknown): number {
  if (!Array.isArray(value) && !isObject(value)) return 0;
  const parts: unknown[] = Object.values(value);
  return parts.reduce<number>((sum, each) => sum + membersOf(each), Array.isArray(value) ? 0 : parts.length);
}

// by hand: a regular expression's stack is too small for a text of megabytes
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start); ; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0;
    while (text[quote - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return quote + 1;
  }
}

/** As JSON.stringify, with the texts of exact numbers. */
export function writeJson(value: unknown, indent = 0, margin = ""): string {
  if (value instanceof ExactNumber) return value.text;
  const inner = margin + " ".repeat(indent);
  const enclosed = (open: string, parts: string[], close: string) => {
    if (parts.length === 0) return open + close;
    return indent > 0
      ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}`
      : `${open}${parts.join(",")}${close}`;
  };
  if (Array.isArray(value)) return enclosed("[", value.map((each) => writeJson(each, indent, inner)), "]");
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, each]) => each !== undefined);
  return enclosed("{", members.map(([name, each]) => `${JSON.stringify(name)}:${indent > 0 ? " " : ""}${writeJson(each, indent, inner)}`), "}");
}

/** A copy of JSON's own values, all of whose objects have no prototype. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isObject(value)) return value;
  return bare(Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyOf(each)]))) as T;
}

/** The object's own members in one that inherits nothing. */
function bare(value: Record<string, unknown>): Record<string, unknown> {
  const made = Object.create(null) as Record<string, unknown>;
  for (const [name, each] of Object.entries(value)) made[name] = each;
  return made;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof ExactNumber);
}
