// What the page knows of its user. The token is never stored: closing the page forgets it.
import { signal } from "@preact/signals";

export const token = signal("");
/** The API has answered 401 to what we have; the dialog that asks for a token is shown then. */
export const tokenRefused = signal(false);

const PRODUCT = "fetcher.product";

/** The product in whose name things are made and listed; empty: all. No secret, so it is kept. */
export const product = signal(read(PRODUCT));
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
