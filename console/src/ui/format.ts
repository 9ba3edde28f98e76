// Numbers, sizes and times as a person reads them.
const numbers = new Intl.NumberFormat("en");
const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clocks = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export const count = (value: number): string => numbers.format(value);

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(left < 10 ? 1 : 0)} ${units[unit]}`;
}

export function seconds(value: number): string {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  if (value < 86_400) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86_400)} d ${Math.round((value % 86_400) / 3600)} h`;
}

/** How many pixels one is here: the sizes of styles.css are made for 15 a rem. */
export const unit = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;

/** In the reader's own time zone. */
export const time = (text: string): string => times.format(new Date(text));
export const clock = (text: string): string => clocks.format(new Date(text));

export function ago(text: string, now = Date.now()): string {
  const gone = (now - Date.parse(text)) / 1000;
  return gone < 5 ? "just now" : `${seconds(gone)} ago`;
}

export function between(start: string, end: string | null | undefined): number {
  return ((end ? Date.parse(end) : Date.now()) - Date.parse(start)) / 1000;
}
