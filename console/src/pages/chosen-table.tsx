// One table of the request: which of its fields are read, and which rows.
import { useEffect, useRef, useState } from "preact/hooks";
import { copyOf, writeJson } from "../api/exact";
import type { Conditions, DatabaseType, Table } from "../api/types";
import { isNoDay, isNoNumber, kindOf, operatorsOf, type Kind } from "../kinds";
import { addTable, draft, removeTable, setConditions, valueOf } from "../request";
import { texts } from "../texts";
import { Button, Field } from "../ui/parts";
import { LimitLine } from "./build";
import { columnsOf, hasWords } from "./schema";

const t = texts.build;
const NO_CONDITIONS: Record<string, Conditions> = copyOf({});
const NONE: Conditions = copyOf({});

/** So many fields are found by looking. */
const FEW_FIELDS = 12;

interface Props {
  source: string;
  /** Undefined as long as nobody has told it. */
  database: DatabaseType | undefined;
  table: string;
  fields: string[];
  known: Table | undefined;
  most: number | undefined;
}

/** What kind a field of the table is. */
export function kindsOf(known: Table | undefined, database: DatabaseType | undefined): (field: string) => Kind {
  const kinds = new Map((known ? columnsOf(known) : []).map((column) => [column.name, kindOf(column.type, database)]));
  return (field) => kinds.get(field) ?? kindOf("", database);
}

export function ChosenTable({ source, database, table, fields, known, most }: Props) {
  const [words, setWords] = useState("");
  const columns = known ? columnsOf(known) : fields.filter((name) => name !== "*").map((name) => ({ name, type: "" }));
  const isAll = fields.includes("*");
  const conditions = draft.value.dataRequest.filters?.[source]?.[table] ?? NO_CONDITIONS;
  const found = columns.filter((column) => hasWords(column.name, words));
  const kindOfField = kindsOf(known, database);
  const used = isAll ? columns.length : fields.length;

  // who has added a filter goes on there: the button is off again, and would lose the focus
  const box = useRef<HTMLElement>(null);
  const added = useRef("");
  useEffect(() => {
    const operators = [...(box.current?.querySelectorAll<HTMLElement>(".condition select") ?? [])];
    if (added.current) operators.findLast((each) => each.ariaLabel === operatorLabel(added.current))?.focus();
    added.current = "";
  }, [conditions]);

  const names = columns.map((column) => column.name);
  const isTooMuch = most !== undefined && names.length > most;

  function toggle(name: string): void {
    const before = isAll ? names : fields;
    const after = (before.includes(name) ? before.filter((each) => each !== name) : [...before, name]).slice(0, most);
    if (after.length > 0) addTable(source, table, after);
  }

  return (
    <section class="card chosen" aria-label={`${source} · ${table}`} ref={box}>
      <div class="page-head">
        <h3><span class="faint">{source} ·</span> {table}</h3>
        <Button kind="quiet" label={t.removeTable(table)} onClick={() => removeTable(source, table)}>✕</Button>
      </div>
      <LimitLine used={used} most={most} what={t.limitFields} />
      {columns.length > FEW_FIELDS ? (
        <>
          <Field label={t.searchFields}>
            {(ids) => <input {...ids} type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />}
          </Field>
          <p class="faint" role="status">{t.foundFields(found.length, columns.length)}</p>
        </>
      ) : null}
      <div class="fields">
        <label class="check">
          <input type="checkbox" checked={isAll} disabled={isAll ? names.length === 0 : isTooMuch} onChange={() => addTable(source, table, isAll ? names.slice(0, most) : ["*"])} />
          <strong>{t.allFields}</strong>
        </label>
        {found.map((column) => (
          <label class="check" key={column.name}>
            <input
              type="checkbox"
              checked={isAll || fields.includes(column.name)}
              disabled={!isAll && most !== undefined && fields.length >= most && !fields.includes(column.name)}
              onChange={() => toggle(column.name)}
            />
            <span>{column.name} <span class="faint">{column.type}</span></span>
          </label>
        ))}
      </div>
      {Object.entries(conditions).flatMap(([field, operators]) => Object.entries(operators).map(([operator, values], index) => (
        <Condition
          key={`${field}\n${index}`}
          field={field}
          operator={operator}
          values={values}
          taken={Object.keys(operators)}
          kind={kindOfField(field)}
          onChange={(next, nextValues) => {
            // in its place, so that the focus stays
            const all = Object.entries(operators).map(([name, each]) => (name === operator ? [next, nextValues] : [name, each]));
            setConditions(source, table, field, copyOf(Object.fromEntries(all)));
          }}
          onRemove={() => {
            const { [operator]: _old, ...others } = operators;
            setConditions(source, table, field, others);
          }}
        />
      )))}
      <NewCondition
        fields={names}
        onAdd={(field) => {
          const taken = conditions[field] ?? NONE;
          const operator = operatorsOf(kindOfField(field)).find((each) => !(each in taken));
          if (!operator) return;
          added.current = field;
          setConditions(source, table, field, { ...taken, [operator]: startValues(operator) });
        }}
      />
    </section>
  );
}

const operatorLabel = (field: string): string => `${t.filterOperator}: ${field}`;

function startValues(operator: string): unknown[] {
  if (operator === "is_null" || operator === "not_null") return [true];
  return operator === "between" ? ["", ""] : [""];
}

interface ConditionProps {
  field: string;
  operator: string;
  values: unknown[];
  taken: string[];
  kind: Kind;
  onChange: (operator: string, values: unknown[]) => void;
  onRemove: () => void;
}

function Condition({ field, operator, values, taken, kind, onChange, onRemove }: ConditionProps) {
  const known = operatorsOf(kind);
  const shown = known.includes(operator) ? known : [operator, ...known];

  function choose(next: string): void {
    const isSameShape = (next === "between") === (operator === "between") && !["is_null", "not_null"].some((each) => each === next || each === operator);
    onChange(next, isSameShape ? (["in", "nin"].includes(next) ? values : values.slice(0, next === "between" ? 2 : 1)) : startValues(next));
  }

  return (
    <div class="condition">
      <code class="condition-field">{field}</code>
      <select aria-label={operatorLabel(field)} value={operator} onChange={(event) => choose(event.currentTarget.value)}>
        {shown.map((each) => <option key={each} value={each} disabled={each !== operator && taken.includes(each)}>{t.operators[each] ?? each}</option>)}
      </select>
      <div class="condition-values">
        <Values field={field} operator={operator} values={values} kind={kind} onChange={(next) => onChange(operator, next)} />
      </div>
      <Button kind="quiet" label={t.removeFilter(field)} onClick={onRemove}>✕</Button>
    </div>
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : writeJson(value);
}

function Values({ field, operator, values, kind, onChange }: { field: string; operator: string; values: unknown[]; kind: Kind; onChange: (values: unknown[]) => void }) {
  if (operator === "is_null" || operator === "not_null") return null;
  if (operator === "in" || operator === "nin") {
    return <ValueList field={field} values={values} kind={kind} onChange={onChange} />;
  }
  if (kind === "boolean") {
    return (
      <select aria-label={`${t.filterValue}: ${field}`} value={String(values[0])} onChange={(event) => onChange([valueOf(event.currentTarget.value, kind)])}>
        <option value="">…</option><option value="true">{texts.common.yes}</option><option value="false">{texts.common.no}</option>
      </select>
    );
  }
  const input = (index: number, label: string) => (
    <input
      aria-label={`${label}: ${field}`}
      placeholder={kind === "time" ? t.filterTime : label}
      title={kind === "time" ? t.filterTimeHint : undefined}
      aria-invalid={isNoNumber(values[index], kind) || isNoDay(values[index], kind)}
      inputMode={kind === "number" ? "decimal" : undefined}
      value={shown(values[index] ?? "")}
      onInput={(event) => onChange(Object.assign([...values], { [index]: valueOf(event.currentTarget.value, kind) }))}
    />
  );
  return (
    <>
      {operator === "between" ? <>{input(0, t.filterFrom)}{input(1, t.filterTo)}</> : input(0, t.filterValue)}
      <WhatIsWrong values={values} kind={kind} />
    </>
  );
}

function WhatIsWrong({ values, kind }: { values: unknown[]; kind: Kind }) {
  const text = values.some((value) => isNoNumber(value, kind)) ? t.noNumber : values.some((value) => isNoDay(value, kind)) ? t.noDay : undefined;
  return text ? <span class="error" role="status">{text}</span> : null;
}

/** Values one a line. What is typed stays as it is; an empty line is no value. */
function ValueList({ field, values, kind, onChange }: { field: string; values: unknown[]; kind: Kind; onChange: (values: unknown[]) => void }) {
  const written = values.map(shown).join("\n");
  const [text, setText] = useState(written);
  const meant = linesOf(text).map((each) => shown(valueOf(each, kind))).join("\n");
  return (
    <>
      <textarea
        rows={2}
        aria-label={`${t.filterValues}: ${field}`}
        placeholder={t.filterValues}
        aria-invalid={values.some((value) => isNoNumber(value, kind) || isNoDay(value, kind))}
        value={meant === written ? text : written}
        onInput={(event) => {
          setText(event.currentTarget.value);
          onChange(linesOf(event.currentTarget.value).map((each) => valueOf(each, kind)));
        }}
      />
      <WhatIsWrong values={values} kind={kind} />
    </>
  );
}

function linesOf(text: string): string[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.length > 0 ? lines : [""];
}

function NewCondition({ fields, onAdd }: { fields: string[]; onAdd: (field: string) => void }) {
  const [field, setField] = useState("");
  return (
    <div class="filters">
      <Field label={t.filterField}>
        {(ids) => (
          <select {...ids} value={field} onChange={(event) => setField(event.currentTarget.value)}>
            <option value="">…</option>
            {fields.map((each) => <option key={each}>{each}</option>)}
          </select>
        )}
      </Field>
      <Button disabled={field === ""} onClick={() => { onAdd(field); setField(""); }}>{t.filter}</Button>
    </div>
  );
}
