// The page's places: the part of the address behind "#". Browsers' back and forward work.
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export interface Place {
  /** "/jobs/123" is ["jobs", "123"]. */
  parts: string[];
  query: URLSearchParams;
}

export const place = computed<Place>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decodePart);
  return { parts: parts.length > 0 ? parts : ["connections"], query: new URLSearchParams(query) };
});

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(parts: string[], query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts: string[], query: Record<string, string | undefined> = {}): void {
  location.hash = href(parts, query);
}

/** Changes the query of this place without a step in the browser's history. */
export function replaceQuery(query: Record<string, string | undefined>): void {
  history.replaceState(null, "", href(place.peek().parts, query));
  hash.value = location.hash;
}
