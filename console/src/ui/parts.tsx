// The small parts that every page is made of.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/http";
import { tokenRefused } from "../session";
import { texts } from "../texts";
import { useShown } from "./load";

type Kind = "primary" | "plain" | "danger" | "quiet";

interface ButtonProps {
  children: ComponentChildren;
  onClick?: () => unknown;
  kind?: Kind;
  type?: "button" | "submit";
  disabled?: boolean;
  label?: string;
}

/** While what it started has not ended, it is busy and takes no second click. */
export function Button({ children, onClick, kind = "plain", type = "button", disabled, label }: ButtonProps) {
  const [busy, setBusy] = useState(false);
  const shown = useShown();
  async function run(): Promise<void> {
    if (!onClick || busy) return;
    const started = onClick();
    if (!(started instanceof Promise)) return;
    setBusy(true);
    try {
      await started;
    } finally {
      if (shown.current) setBusy(false);
    }
  }
  return (
    <button
      type={type}
      class={`button ${kind}`}
      disabled={disabled}
      aria-busy={busy}
      aria-label={label}
      title={label}
      onClick={onClick ? () => void run() : undefined}
    >
      {children}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  required?: boolean;
  children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ComponentChildren;
}

/** A control with its label, a hint and what is wrong with it. */
export function Field({ label, hint, error, required, children }: FieldProps) {
  const id = useId();
  const said = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  return (
    <div class={`field${error ? " wrong" : ""}`}>
      <label for={id}>
        {label}
        {required ? <span class="required" aria-hidden="true">*</span> : null}
      </label>
      {children({ id, "aria-describedby": said || undefined, "aria-invalid": Boolean(error) })}
      {hint ? <p class="hint" id={`${id}-hint`}>{hint}</p> : null}
      {error ? <p class="error" id={`${id}-error`}>{error}</p> : null}
    </div>
  );
}

interface SettledInputProps {
  ids: { id: string };
  type: "search" | "date";
  value: string;
  onSettled: (value: string) => void;
}

/** What is typed counts with Enter or when the field is left; until then nobody overwrites it. */
export function SettledInput({ ids, type, value, onSettled }: SettledInputProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const shared = {
    ...ids,
    value: text,
    onInput: (event: { currentTarget: { value: string } }) => setText(event.currentTarget.value),
    onChange: (event: { currentTarget: { value: string } }) => onSettled(event.currentTarget.value),
  };
  return type === "date" ? <input {...shared} type="date" /> : <input {...shared} type="search" />;
}

/** A failure in words, with what the API calls it. */
export function Failed({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  const fields = Object.entries(problem.fields);
  return (
    <div class="notice bad" role="alert">
      <p class="notice-title">{problem.title}</p>
      <p>{problem.message}</p>
      {problem.stage ? <p>{texts.failures.at(problem.stage, problem.reason)}</p> : null}
      {problem.stage || problem.reason ? <p>{texts.failures.advice(problem.stage, problem.reason)}</p> : null}
      {fields.length > 0 ? (
        <ul>{fields.map(([name, text]) => <li key={name}><code>{name}</code>: {text}</li>)}</ul>
      ) : null}
      {problem.retryAfter ? <p>{texts.problem.retry(problem.retryAfter)}</p> : null}
      <p class="faint">{problem.code}</p>
      {problem.status === 401 ? <Button onClick={() => { tokenRefused.value = true; }}>{texts.app.enterToken}</Button> : null}
      {children}
    </div>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "good" | "warn" | "bad"; children: ComponentChildren }) {
  return <div class={`notice ${kind}`} role="status">{children}</div>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children}</div>;
}

export function Loading() {
  return <p class="loading" role="status">{texts.common.loading}</p>;
}

export type Tone = "good" | "bad" | "warn" | "busy" | "idle";

/** A state as a word; its colour only repeats it. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus inside and gives it back. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // closed before it leaves the page: that gives the focus back to where it was
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" label={texts.common.close} onClick={onClose}>✕</Button>
      </header>
      {children}
    </dialog>
  );
}

/** `text` may be made when it is asked for. */
export function Copy({ text, label = texts.common.copy }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState(false);
  async function copy(): Promise<void> {
    const copied = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(copied);
    } catch {
      copyBySelection(copied);
    }
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  }
  return <Button onClick={copy}>{done ? texts.common.copied : label}</Button>;
}

// navigator.clipboard is there in secure contexts alone; a page on plain http is none.
function copyBySelection(text: string): void {
  const { activeElement: focused } = document;
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
}
