// The frame around every page: places to go, in whose name, and the token where one is asked for.
import { useEffect, useRef, useState } from "preact/hooks";
import { BuildPage } from "./pages/build";
import { ConnectionForm } from "./pages/connection-form";
import { ConnectionsPage } from "./pages/connections";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { OperationsPage } from "./pages/operations";
import { SchemaPage } from "./pages/schema";
import { go, href, place } from "./router";
import { isProduct, product, signOut, theme, token, tokenRefused, visitor, type Theme } from "./session";
import { texts } from "./texts";
import { Button, Dialog, Empty, Field } from "./ui/parts";
import { Toasts } from "./ui/toasts";

const PLACES = ["connections", "build", "jobs", "operations"] as const;

export function App() {
  const main = useRef<HTMLElement>(null);
  const { parts } = place.value;
  const key = parts.join("/");
  const first = useRef(true);
  useEffect(() => {
    document.title = `${titleOf(parts[0])} · ${texts.app.title}`;
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
    scrollTo(0, 0);
  }, [key]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        {texts.app.skip}
      </a>
      <header class="top">
        <a class="brand" href={href(["connections"])}>{texts.app.title}</a>
        <nav aria-label={texts.app.navigation}>
          {PLACES.map((name) => (
            <a key={name} href={href([name])} aria-current={parts[0] === name ? "page" : undefined}>{titleOf(name)}</a>
          ))}
        </nav>
        <div class="top-settings"><ProductInput key={visitor.value} /><ThemeSelect />{token.value ? <SignOut /> : null}</div>
      </header>
      <main id="main" ref={main} tabIndex={-1}><Page key={visitor.value} /></main>
      <Toasts />
      {tokenRefused.value ? <TokenDialog /> : null}
    </>
  );
}

function titleOf(name: string | undefined): string {
  const known = PLACES.find((each) => each === name);
  return known ? texts.app[known] : texts.app.notFound;
}

function Page() {
  const [name, id, what] = place.value.parts;
  if (name === "connections") {
    if (id === undefined) return <ConnectionsPage />;
    if (id === "new") return <ConnectionForm key="new" id={undefined} />;
    if (what === "edit") return <ConnectionForm key={id} id={id} />;
    if (what === "schema") return <SchemaPage key={id} id={id} />;
  }
  if (name === "build") return <BuildPage />;
  if (name === "jobs") return id === undefined ? <JobsPage /> : <JobPage key={id} id={id} />;
  if (name === "operations") return <OperationsPage />;
  return <Empty title={texts.app.notFound}><a href={href(["connections"])}>{texts.app.connections}</a></Empty>;
}

function ProductInput() {
  const [text, setText] = useState(product.value);
  const wanted = text.trim();
  const isWrong = wanted !== "" && !isProduct(wanted);
  return (
    <>
      <label class={`inline${isWrong ? " wrong" : ""}`} title={isWrong ? texts.form.errors.product : texts.app.productHint}>
        <span>{texts.app.product}</span>
        <input
          value={text}
          aria-invalid={isWrong}
          size={12}
          placeholder={texts.common.all}
          onInput={(event) => setText(event.currentTarget.value)}
          onChange={() => { if (!isWrong) product.value = wanted; }}
        />
      </label>
      {isWrong ? <span class="error" role="status">{texts.form.errors.product}</span> : null}
    </>
  );
}

function ThemeSelect() {
  return (
    <label class="inline">
      <span>{texts.app.theme}</span>
      <select value={theme.value} onChange={(event) => { theme.value = event.currentTarget.value as Theme; }}>
        {Object.entries(texts.app.themes).map(([value, label]) => <option key={value} value={value}>{label}</option>)}
      </select>
    </label>
  );
}

function SignOut() {
  return <Button kind="quiet" onClick={() => { signOut(); go(["connections"]); }}>{texts.app.signOut}</Button>;
}

function TokenDialog() {
  const [text, setText] = useState("");
  function use(event: Event): void {
    event.preventDefault();
    tokenRefused.value = false;
    token.value = text.trim();
  }
  return (
    <Dialog title={texts.app.signIn} onClose={() => { tokenRefused.value = false; }}>
      <form onSubmit={use}>
        <p>{texts.app.signInText}</p>
        {token.value ? <p class="error" role="alert">{texts.app.signInRefused}</p> : null}
        <Field label={texts.app.signIn} required>
          {(ids) => (
            <input {...ids} type="password" autocomplete="off" autofocus required value={text} onInput={(event) => setText(event.currentTarget.value)} />
          )}
        </Field>
        <div class="actions"><Button kind="primary" type="submit" disabled={text.trim() === ""}>{texts.app.signInAction}</Button></div>
      </form>
    </Dialog>
  );
}
