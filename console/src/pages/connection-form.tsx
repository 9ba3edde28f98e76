// The form of a connection: what the chosen type needs, and at once what is wrong with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { isObject, readJson, writeJson } from "../api/exact";
import { asProblem, type Problem } from "../api/http";
import { connections } from "../api/operations";
import type { Connection, ConnectionInput, DatabaseType } from "../api/types";
import { go, href } from "../router";
import { isProduct, product } from "../session";
import { texts } from "../texts";
import { useLoaded, useShown } from "../ui/load";
import { Button, Failed, Field, Loading } from "../ui/parts";
import { tell } from "../ui/toasts";
import { forgetTest } from "./connections";

const t = texts.form;

interface TypeFacts {
  label: string;
  port: number;
  /** Modes of `ssl.mode`; those in `needsCa` verify the server. */
  modes: readonly string[];
  needsCa: readonly string[];
}

export const TYPES: Record<DatabaseType, TypeFacts> = {
  POSTGRESQL: { label: "PostgreSQL", port: 5432, modes: ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"], needsCa: ["verify-ca", "verify-full"] },
  MYSQL: { label: "MySQL / MariaDB", port: 3306, modes: ["false", "true", "skip-verify", "preferred"], needsCa: [] },
  SQL_SERVER: { label: "SQL Server", port: 1433, modes: ["disable", "false", "true", "strict"], needsCa: ["strict"] },
  ORACLE: { label: "Oracle", port: 1521, modes: ["disable", "false", "true", "enable", "verify", "skip-verify"], needsCa: ["verify"] },
  MONGODB: { label: "MongoDB", port: 27017, modes: ["disable", "false", "true", "enable", "insecure"], needsCa: [] },
  SQLITE: { label: "SQLite", port: 0, modes: [], needsCa: [] },
};

interface Values {
  type: DatabaseType;
  product: string;
  configName: string;
  host: string;
  port: string;
  databaseName: string;
  userName: string;
  password: string;
  schema: string;
  oracleKind: "serviceName" | "sid";
  oracleName: string;
  /** The rest of the metadata, as JSON. */
  metadata: string;
  mode: string;
  ca: string;
  cert: string;
  key: string;
}

const EMPTY: Values = {
  type: "POSTGRESQL", product: "", configName: "", host: "", port: "5432", databaseName: "", userName: "",
  password: "", schema: "", oracleKind: "serviceName", oracleName: "", metadata: "", mode: "", ca: "", cert: "", key: "",
};

/** Modes without TLS, or with no say in whom it trusts. */
const PLAIN_MODES: readonly string[] = ["", "disable", "false"];

/** Names that the API's refusals have for the form's fields, where they are others. */
const REFUSED_AS: Partial<Record<keyof Values, readonly string[]>> = {
  configName: ["config_name"], databaseName: ["database_name"], userName: ["username"], password: ["password_encrypted"],
  mode: ["ssl.mode", "ssl"], ca: ["ssl.ca"], cert: ["ssl.cert"], key: ["ssl.key"],
  oracleName: ["metadata.serviceName", "metadata.sid"], metadata: ["metadata.invalidText"], product: ["X-Product-Name"],
};

const ORACLE_NAMES = ["serviceName", "sid"] as const;

type Errors = Partial<Record<keyof Values, string>>;

export function ConnectionForm({ id }: { id: string | undefined }) {
  const found = useLoaded((abort) => (id ? connections.get(id, abort) : Promise.resolve(undefined)), [id]);
  // it is read again with another token; what was typed stays, as does what it was typed over
  const first = useRef<Connection | undefined>(undefined);
  first.current ??= found.value;
  if (id && !first.current) return found.problem ? <Failed problem={found.problem} /> : <Loading />;
  return <Form old={first.current} />;
}

function Form({ old }: { old: Connection | undefined }) {
  const start = old ? valuesOf(old) : { ...EMPTY, product: product.value };
  const [values, setValues] = useState<Values>(start);
  const [touched, setTouched] = useState<Partial<Record<keyof Values, boolean>>>({});
  const [problem, setProblem] = useState<Problem>();
  const isSaving = useRef(false);
  const isShown = useShown();
  const errors = errorsOf(values, old);
  const facts = TYPES[values.type];
  const isFile = values.type === "SQLITE";

  useEffect(() => setProblem(undefined), [values]);

  function change(part: Partial<Values>): void {
    setValues((all) => ({ ...all, ...part }));
  }

  function chooseType(type: DatabaseType): void {
    const usual = Object.values(TYPES).some((each) => String(each.port) === values.port);
    change({ type, mode: type === old?.type ? start.mode : "", ...(usual || values.port === "" ? { port: String(TYPES[type].port) } : {}) });
  }

  function refusedAs(name: keyof Values): string | undefined {
    return [name, ...(REFUSED_AS[name] ?? [])].map((each) => problem?.fields[each]).find((each) => each !== undefined);
  }

  async function save(): Promise<void> {
    setTouched(Object.fromEntries(Object.keys(values).map((name) => [name, true])));
    if (Object.keys(errors).length > 0) {
      document.querySelector<HTMLElement>(".wrong input, .wrong textarea, .wrong select")?.focus();
      return;
    }
    const changes = old ? changesOf(values, old) : undefined;
    if (old && Object.keys(changes ?? {}).length === 0) {
      tell(t.unchanged(old.configName));
      go(["connections"]);
      return;
    }
    // Enter and a click, or two clicks, are one
    if (isSaving.current) return;
    isSaving.current = true;
    try {
      const saved = old && changes ? await connections.change(old.id, changes) : await connections.create(inputOf(values), values.product.trim());
      forgetTest(saved.id);
      tell(old ? texts.connections.saved(saved.configName) : texts.connections.created(saved.configName));
      if (isShown.current) go(["connections"]);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      isSaving.current = false;
    }
  }

  function text(name: keyof Values, label: string, options: { hint?: string; required?: boolean; type?: "text" | "password"; area?: boolean; mode?: "numeric" } = {}) {
    const said = refusedAs(name) ?? (touched[name] ? errors[name] : undefined);
    return (
      <Field label={label} hint={options.hint} error={said} required={options.required ?? false}>
        {(ids) => {
          const shared = {
            ...ids,
            value: values[name],
            "aria-required": options.required ?? false,
            onInput: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
            onBlur: () => setTouched((all) => ({ ...all, [name]: true })),
            autocomplete: "off" as const,
            spellcheck: false,
          };
          if (options.area) return <textarea class="code" rows={4} {...shared} />;
          if (options.type === "password") return <input {...shared} type="password" autocomplete="new-password" />;
          return <input {...shared} type="text" inputMode={options.mode} />;
        }}
      </Field>
    );
  }

  return (
    <form class="form" noValidate onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="page-head"><h1>{old ? t.editTitle(old.configName) : t.createTitle}</h1></div>
      {problem ? <Failed problem={problem} /> : null}
      <div class="pairs">
        <Field label={t.type} required>
          {(ids) => (
            <select {...ids} value={values.type} onChange={(event) => chooseType(event.currentTarget.value as DatabaseType)}>
              {Object.entries(TYPES).map(([name, each]) => <option key={name} value={name}>{each.label}</option>)}
            </select>
          )}
        </Field>
        {old ? null : text("product", t.product, { hint: t.productHint, required: true })}
        {text("configName", t.configName, { hint: t.configNameHint, required: true })}
      </div>
      {isFile ? text("databaseName", t.sqliteFile, { hint: t.sqliteHint, required: true }) : (
        <>
          <div class="pairs">
            {text("host", t.host, { required: true })}
            {text("port", t.port, { required: true, mode: "numeric" })}
            {text("databaseName", t.databaseName, { required: true })}
            {text("schema", t.schema, { hint: t.schemaHint })}
          </div>
          <div class="pairs">
            {text("userName", t.userName, { required: true })}
            {text("password", t.password, { type: "password", required: !hasPassword(old), ...(hasPassword(old) ? { hint: t.passwordKept } : {}) })}
          </div>
          {values.type === "ORACLE" ? (
            <div class="pairs">
              <Field label={t.oracleKind} required>
                {(ids) => (
                  <select {...ids} value={values.oracleKind} onChange={(event) => change({ oracleKind: event.currentTarget.value as Values["oracleKind"] })}>
                    <option value="serviceName">{t.oracleService}</option>
                    <option value="sid">{t.oracleSid}</option>
                  </select>
                )}
              </Field>
              {text("oracleName", values.oracleKind === "sid" ? t.oracleSid : t.oracleService, { required: true })}
            </div>
          ) : null}
          <fieldset>
            <legend>{t.tls}</legend>
            <Field label={t.tlsMode} hint={old?.ssl?.mode ? t.keyKept : undefined} error={refusedAs("mode")}>
              {(ids) => (
                <select {...ids} value={values.mode} onChange={(event) => change({ mode: event.currentTarget.value })}>
                  <option value="">{t.tlsNone}</option>
                  {facts.modes.map((mode) => <option key={mode}>{mode}</option>)}
                </select>
              )}
            </Field>
            {!PLAIN_MODES.includes(values.mode) ? (
              <>
                {text("ca", t.ca, { area: true, required: facts.needsCa.includes(values.mode) })}
                {values.type === "SQL_SERVER" ? null : (
                  <div class="pairs">
                    {text("cert", t.cert, { area: true })}
                    {text("key", t.key, { area: true })}
                  </div>
                )}
              </>
            ) : null}
          </fieldset>
        </>
      )}
      {text("metadata", t.metadata, { hint: t.metadataHint, area: true })}
      <div class="actions">
        <Button kind="primary" type="submit">{old ? texts.common.save : t.create}</Button>
        <a class="button" href={href(["connections"])}>{texts.common.cancel}</a>
      </div>
    </form>
  );
}

/** Whether a password is stored that an empty field keeps; a file has none. */
function hasPassword(old: Connection | undefined): boolean {
  return old !== undefined && old.type !== "SQLITE";
}

function valuesOf(old: Connection): Values {
  const sid = old.metadata?.["sid"];
  const service = old.metadata?.["serviceName"];
  const rest = { ...old.metadata };
  if (old.type === "ORACLE") for (const name of ORACLE_NAMES) delete rest[name];
  return {
    ...EMPTY,
    type: old.type,
    product: old.productName ?? "",
    configName: old.configName,
    host: old.host,
    port: String(old.port),
    databaseName: old.databaseName,
    userName: old.userName,
    schema: old.schema ?? "",
    oracleKind: typeof sid === "string" && sid ? "sid" : "serviceName",
    oracleName: String(sid || service || ""),
    metadata: Object.keys(rest).length > 0 ? writeJson(rest, 2) : "",
    mode: old.ssl?.mode ?? "",
  };
}

function errorsOf(values: Values, old: Connection | undefined): Errors {
  const errors: Errors = {};
  const needed: (keyof Values)[] = ["configName", "databaseName"];
  if (!old) needed.push("product");
  if (values.type !== "SQLITE") {
    needed.push("host", "userName");
    if (!hasPassword(old)) needed.push("password");
    if (values.type === "ORACLE") needed.push("oracleName");
    const port = Number(values.port);
    if (!/^\d+$/.test(values.port) || port < 1 || port > 65535) errors.port = t.errors.port;
    if (/[/\s]|:\/\//.test(values.host.trim())) errors.host = t.errors.host;
    const givesTls = !PLAIN_MODES.includes(values.mode) && (!old || values.mode !== (old.ssl?.mode ?? "") || values.ca !== "");
    if (givesTls && TYPES[values.type].needsCa.includes(values.mode) && values.ca.trim() === "") errors.ca = t.errors.ca;
    if (!PLAIN_MODES.includes(values.mode) && (values.cert.trim() === "") !== (values.key.trim() === "")) errors[values.cert.trim() ? "key" : "cert"] = t.errors.pair;
  }
  if (metadataOf(values) === undefined) errors.metadata = t.errors.metadata;
  if (!/^[A-Za-z0-9_-]{3,100}$/.test(values.configName)) errors.configName = t.errors.name;
  if (!old && !isProduct(values.product.trim())) errors.product = t.errors.product;
  for (const name of needed) if (values[name].trim() === "") errors[name] = t.errors.required;
  return errors;
}

function inputOf(values: Values): ConnectionInput {
  const input: ConnectionInput = {
    configName: values.configName, type: values.type, databaseName: values.databaseName,
  };
  const metadata = metadataOf(values) ?? {};
  if (Object.keys(metadata).length > 0) input.metadata = metadata;
  if (values.type === "SQLITE") return input;
  Object.assign(input, { host: values.host.trim(), port: Number(values.port), userName: values.userName, password: values.password });
  if (values.schema) input.schema = values.schema;
  if (values.mode) input.ssl = sslOf(values);
  return input;
}

/** All of the metadata; undefined where the text is no JSON object. */
function metadataOf(values: Values): Record<string, unknown> | undefined {
  let rest: unknown = {};
  try {
    if (values.metadata.trim() !== "") rest = readJson(values.metadata);
  } catch {
    return undefined;
  }
  if (!isObject(rest)) return undefined;
  return values.type === "ORACLE" ? { ...rest, [values.oracleKind]: values.oracleName.trim() } : rest;
}

function sslOf(values: Values): NonNullable<ConnectionInput["ssl"]> {
  if (PLAIN_MODES.includes(values.mode)) return { mode: values.mode };
  const parts = { mode: values.mode, ca: values.ca, cert: values.cert, key: values.key };
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value.trim() !== ""));
}

// A change sends what differs alone: what is left out stays as it is stored.
function changesOf(values: Values, old: Connection): ConnectionInput {
  const before = inputOf(valuesOf(old));
  const after = inputOf(values);
  const changes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(after)) {
    if (name === "password" && value === "") continue;
    if (name === "ssl" || name === "metadata") continue;
    if (value !== before[name as keyof ConnectionInput]) changes[name] = value;
  }
  const metadata = after.metadata ?? {};
  if (writeJson(metadata) !== writeJson(old.metadata ?? {}) && writeJson(metadata) !== writeJson(before.metadata ?? {})) changes["metadata"] = metadata;
  // an emptied schema is a change too
  if (values.type !== "SQLITE" && values.schema !== (old.schema ?? "")) changes["schema"] = values.schema;
  const mode = old.ssl?.mode ?? "";
  if (values.mode === "" && mode !== "") changes["ssl"] = null;
  else if (values.mode !== "" && (values.mode !== mode || values.ca || values.cert || values.key)) {
    const { mode: chosen, ...rest } = sslOf(values);
    changes["ssl"] = values.mode === mode ? rest : { mode: chosen, ...rest };
  }
  return changes as ConnectionInput;
}
