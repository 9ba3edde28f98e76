// What a connection holds: tables on the left, the fields of the chosen one beside them.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { connections } from "../api/operations";
import type { Column, Schema, Table } from "../api/types";
import { href, place, replaceQuery } from "../router";
import { texts } from "../texts";
import { count } from "../ui/format";
import { useLoaded } from "../ui/load";
import { Button, Empty, Failed, Field, Loading } from "../ui/parts";
import { Rows } from "../ui/rows";

const t = texts.schema;
const ROW_HEIGHT = 44;

export function SchemaPage({ id }: { id: string }) {
  const schema = useLoaded((abort) => connections.schema(id, abort), [id]);
  if (schema.value) return <Browser schema={schema.value} />;
  if (schema.problem) return <Failed problem={schema.problem}><Button onClick={schema.reload}>{texts.common.reload}</Button></Failed>;
  return <Loading />;
}

function Browser({ schema }: { schema: Schema }) {
  const words = place.value.query.get("q") ?? "";
  const name = place.value.query.get("table") ?? "";
  const found = useMemo(() => search(schema.tables, words), [schema, words]);
  const table = schema.tables.find((each) => each.name === name);
  return (
    <>
      <div class="page-head">
        <h1>{t.title(schema.configName)}</h1>
        <a class="button" href={href(["connections"])}>{texts.common.back}</a>
      </div>
      {schema.type === "MONGODB" ? <p class="faint">{t.inferred}</p> : null}
      {schema.tables.length === 0 ? <Empty title={t.noTables}><p>{t.noTablesText} <a href={href(["connections", schema.id, "edit"])}>{t.noTablesEdit}</a></p></Empty> : (
        <div class="split">
          <section aria-label={t.tables(found.length, schema.tables.length)}>
            <Field label={t.searchTables}>
              {(ids) => <input {...ids} type="search" value={words} onInput={(event) => replaceQuery({ q: event.currentTarget.value, table: name })} />}
            </Field>
            <p class="faint" role="status">{t.tables(found.length, schema.tables.length)}</p>
            {found.length === 0 ? <Empty title={t.noMatch} /> : (
              <Rows items={found} rowHeight={ROW_HEIGHT} label={texts.schema.tables(found.length, schema.tables.length)} keyOf={(each) => each.name}>
                {(each) => (
                  <button type="button" class="row-button" aria-current={each.name === name ? "true" : undefined} onClick={() => replaceQuery({ q: words, table: each.name })}>
                    <span class="grow">{each.name}</span>
                    <span class="faint">{t.fields(each.fields.length)}</span>
                  </button>
                )}
              </Rows>
            )}
          </section>
          {table ? <Fields schema={schema} table={table} /> : <Empty title={t.pick} />}
        </div>
      )}
    </>
  );
}

/** Tables whose name, or one of whose fields, has all the words. */
export function search(tables: readonly Table[], words: string): readonly Table[] {
  const wanted = wordsOf(words);
  if (wanted.length === 0) return tables;
  return tables.filter((table) => {
    const name = table.name.toLowerCase();
    return wanted.every((word) => name.includes(word) || table.fields.some((field) => field.toLowerCase().includes(word)));
  });
}

/** Whether a field's name has all the words. */
export function hasWords(name: string, words: string): boolean {
  const within = name.toLowerCase();
  return wordsOf(words).every((word) => within.includes(word));
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** The fields of a table with what is known of each; documents' fields have no declared type. */
export function columnsOf(table: Table): Column[] {
  const known = new Map((table.columns ?? []).map((column) => [column.name, column]));
  return table.fields.map((name) => known.get(name) ?? { name, type: "", nullable: true, primaryKey: false });
}

function Fields({ schema, table }: { schema: Schema; table: Table }) {
  const box = useRef<HTMLElement>(null);
  // on a narrow page they are below the list, out of sight
  useEffect(() => {
    const top = box.current?.getBoundingClientRect().top ?? 0;
    if (top > innerHeight * 0.8) box.current?.scrollIntoView();
  }, [table]);
  return (
    <section class="card" aria-label={table.name} ref={box}>
      <div class="page-head">
        <h2>{table.name}</h2>
        <a class="button primary" href={href(["build"], { source: schema.configName, table: table.name })}>{t.use}</a>
      </div>
      {table.estimatedRows != null ? <p class="faint">{t.rows(count(table.estimatedRows))}</p> : null}
      <div class="table-box" tabIndex={0} role="region" aria-label={t.field}>
        <table>
          <thead><tr><th scope="col">{t.field}</th><th scope="col">{t.type}</th><th scope="col">{t.nullable}</th><th scope="col">{t.key}</th></tr></thead>
          <tbody>
            {columnsOf(table).map((column) => (
              <tr key={column.name}>
                <td><code>{column.name}</code></td>
                <td>{column.type}</td>
                <td>{column.nullable ? texts.common.yes : texts.common.no}</td>
                <td>{column.primaryKey ? texts.common.yes : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
