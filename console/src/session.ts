// What the page knows of its user. The token is never stored: closing the page forgets it.
import { signal } from "@preact/signals";

export const token = signal("");
/** The API has answered 401 to what we have; the dialog that asks for a token is shown then. */
export const tokenRefused = signal(false);

/** Goes up when somebody else has come: nothing that one has left here is shown to the next. */
export const visitor = signal(0);
/** The last token that was good. */
let taken = "";

/** A new token of the same person changes nothing else: what was typed here is still theirs. */
export function tokenWasTaken(now: string): void {
  // the answer to one that was replaced in the meantime may be late
  if (now === taken || now !== token.peek()) return;
  const isOther = taken !== "" && personOf(now) !== personOf(taken);
  taken = now;
  if (isOther) leave();
}

export function signOut(): void {
  token.value = taken = "";
  leave();
}

function leave(): void {
  product.value = "";
  visitor.value += 1;
}

/** Whom a JSON Web Token names; any other token is a person of its own. */
function personOf(text: string): string {
  try {
    const part = (text.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { tenantId, owner, sub } = JSON.parse(atob(part)) as Record<string, unknown>;
    return tenantId || sub ? JSON.stringify([tenantId, owner, sub]) : text;
  } catch {
    return text;
  }
}

const PRODUCT = "fetcher.product";

/** Whether the API takes it as a product's name, and a browser as a header's value. */
export const isProduct = (text: string): boolean => /^[A-Za-z0-9_-]{1,100}$/.test(text);

/** The product in whose name things are made and listed; empty: all. No secret, so it is kept. */
export const product = signal(isProduct(read(PRODUCT)) ? read(PRODUCT) : "");
product.subscribe((value) => write(PRODUCT, value));

export type Theme = "system" | "light" | "dark";
const THEME = "fetcher.theme";
export const theme = signal<Theme>(asTheme(read(THEME)));
theme.subscribe((value) => {
  write(THEME, value);
  if (value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = value;
});

function asTheme(text: string): Theme {
  return text === "light" || text === "dark" ? text : "system";
}

// A browser may refuse storage altogether; the page works without it.
function read(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function write(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // kept for this page only
  }
}
