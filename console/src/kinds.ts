// What sort of values a column has, and so which operators fit it, from its database's own word.
import type { DatabaseType } from "./api/types";

/**
 * "ordered" values have an order and are no texts for `like`; of "other" ones only equality is
 * certain; "opaque" ones are compared with nothing but NULL.
 */
export type Kind = "number" | "text" | "time" | "boolean" | "ordered" | "other" | "opaque";

const KINDS: Record<Exclude<DatabaseType, "MONGODB" | "SQLITE">, ReadonlyMap<string, Kind>> = {
  POSTGRESQL: kinds({
    number: ["smallint", "integer", "bigint", "oid", "numeric", "real", "double precision"],
    boolean: ["boolean"],
    text: ["text", "character", "bpchar", "character varying", '"char"', "name", "citext"],
    time: ["date", "timestamp without time zone", "timestamp with time zone"],
    ordered: [
      "time without time zone", "time with time zone", "interval", "money", "uuid", "bytea", "bit", "bit varying", "inet", "cidr",
      "macaddr", "macaddr8", "pg_lsn", "xid8", "ltree",
    ],
    opaque: ["json", "jsonpath", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle", "refcursor", "pg_snapshot", "txid_snapshot"],
  }),
  MYSQL: kinds({
    number: ["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"],
    text: ["char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"],
    time: ["date", "datetime", "timestamp"],
    ordered: ["time", "uuid", "inet4", "inet6"],
    opaque: [
      "json", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
      "geomcollection",
    ],
  }),
  SQL_SERVER: kinds({
    number: ["tinyint", "smallint", "int", "bigint", "decimal", "numeric", "money", "smallmoney", "real", "float"],
    boolean: ["bit"],
    text: ["char", "varchar", "nchar", "nvarchar", "sysname", "text", "ntext"],
    time: ["date", "datetime", "smalldatetime", "datetime2", "datetimeoffset"],
    ordered: ["time", "uniqueidentifier"],
    opaque: ["image", "sql_variant", "xml", "json", "vector", "hierarchyid", "geometry", "geography"],
  }),
  ORACLE: kinds({
    number: ["number", "float", "binary_float", "binary_double"],
    boolean: ["boolean"],
    text: ["char", "varchar2", "varchar", "nchar", "nvarchar2", "clob", "nclob"],
    time: ["date", "timestamp", "timestamp with time zone", "timestamp with local time zone"],
    ordered: ["interval"],
    opaque: ["long", "long raw", "blob", "xmltype", "json", "vector", "bfile"],
  }),
};

function kinds(words: Partial<Record<Kind, readonly string[]>>): ReadonlyMap<string, Kind> {
  return new Map(Object.entries(words).flatMap(([kind, each]) => each.map((word): [string, Kind] => [word, kind as Kind])));
}

/** As fetcher/datasources/sqlite/types.py reads a declaration: the first that fits counts. */
const SQLITE: readonly [RegExp, Kind][] = [
  [/\bBOOL|\bTINYINT ?\(1\)/, "boolean"],
  [/DATETIME|TIMESTAMP|\bDATE\b/, "time"],
  [/\b(TINY|SMALL|MEDIUM|BIG)? ?INT(EGER|[248])?\b/, "number"],
  [/CHAR|CLOB|TEXT/, "text"],
  [/BLOB/, "other"],
  [/REAL|FLOA|DOUB|\b(DEC(IMAL)?|NUMERIC|NUMBER)\b/, "number"],
];

/** What a sample of documents has shown of a field: words of fetcher/datasources/mongodb/inference.py. */
const MONGODB: ReadonlyMap<string, Kind> = kinds({
  number: ["number", "decimal"], text: ["string"], time: ["date"], boolean: ["boolean"], ordered: ["objectId"], other: ["binData"],
});

/** Where nobody knows what a field holds, a value is sent as it was typed. */
const UNKNOWN: Kind = "text";

export function kindOf(type: string, database: DatabaseType | undefined): Kind {
  if (type === "" || database === undefined) return UNKNOWN;
  switch (database) {
    case "MONGODB":
      return kindOfSample(type);
    case "SQLITE":
      return SQLITE.find(([pattern]) => pattern.test(type.toUpperCase()))?.[1] ?? UNKNOWN;
    case "MYSQL":
      // numbers that booleans may be compared with
      if (/^(tinyint|bit)\(1\)/i.test(type)) return "boolean";
      return KINDS.MYSQL.get(/^\w+/.exec(type)?.[0].toLowerCase() ?? "") ?? "other";
    default:
      return KINDS[database].get(withoutSizes(type)) ?? "other";
  }
}

function withoutSizes(type: string): string {
  return type.replace(/\([^()]*\)/g, "").toLowerCase().replace(/^interval .*/, "interval");
}

function kindOfSample(type: string): Kind {
  const words = type.replace(/ \(inferred .*$/, "").split("|");
  // of arrays their elements are compared, and those were not looked at
  if (words.includes("unknown") || words.includes("array")) return UNKNOWN;
  const found = new Set(words.flatMap((word) => MONGODB.get(word) ?? []));
  const [first] = found;
  if (first === undefined) return "opaque";
  if (found.size === 1) return first;
  return found.has("text") ? "text" : "ordered";
}

/** Floats of some databases hold what JSON has no numbers for. */
const NUMBER_WORDS: readonly unknown[] = ["NaN", "Infinity", "-Infinity"];

export function isNoNumber(value: unknown, kind: Kind): boolean {
  return kind === "number" && typeof value === "string" && value.trim() !== "" && !NUMBER_WORDS.includes(value);
}

/** Whether it has the form of a day that no calendar has. */
export function isNoDay(value: unknown, kind: Kind): boolean {
  if (kind !== "time" || typeof value !== "string") return false;
  const [, year, month, day] = /^\s*(\d{4})-(\d{2})-(\d{2})(?!\d)/.exec(value)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return false;
  return month < 1 || month > 12 || day < 1 || day > daysOf(year, month);
}

function daysOf(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Whether no value is missing or sure to be refused; of most kinds only the database knows. */
export function mayFit(values: unknown[], kind: Kind): boolean {
  if (kind !== "number" && kind !== "boolean" && kind !== "time") return true;
  return values.every((value) => !(typeof value === "string" && value.trim() === "") && !isNoNumber(value, kind) && !isNoDay(value, kind));
}

const ORDERED = ["gt", "gte", "lt", "lte", "between"];
const NULLS = ["is_null", "not_null"];

export function operatorsOf(kind: Kind): string[] {
  switch (kind) {
    case "boolean":
      return ["eq", "ne", ...NULLS];
    case "text":
      return ["eq", "ne", "like", "in", "nin", ...ORDERED, ...NULLS];
    case "other":
      return [...NULLS, "eq", "ne", "in", "nin"];
    case "opaque":
      return NULLS;
    default:
      return ["eq", "ne", ...ORDERED, "in", "nin", ...NULLS];
  }
}
