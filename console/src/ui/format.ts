// Numbers, sizes and times as a person reads them.
const numbers = new Intl.NumberFormat("en");
const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clocks = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export const count = (value: number): string => numbers.format(value);

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = value;
  // what would be rounded to 1024 of a unit is one of the next
  while (left >= (unit === 0 ? 1024 : 1023.5) && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(left < 9.95 ? 1 : 0)} ${units[unit]}`;
}

export function seconds(value: number): string {
  // less than nothing has gone where the reader's clock is behind the service's
  const ms = Math.max(0, Math.round(value * 1000));
  if (ms < 1000) return `${ms} ms`;
  if (ms < 59_500) return `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
  // rounded before it is taken apart: no "59 min 60 s"
  const [whole, minutes, hours] = [Math.round(ms / 1000), Math.round(ms / 60_000), Math.round(ms / 3_600_000)];
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How many pixels one is here: the sizes of styles.css are made for 15 a rem. */
export const unit = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;

/** In the reader's own time zone. */
export const time = (text: string): string => times.format(new Date(text));
export const clock = (text: string): string => clocks.format(new Date(text));

/** The moment at which a day begins for the reader; the service would begin it at midnight UTC. */
export function beginOf(day: string): string {
  const begin = new Date(`${day}T00:00:00`);
  return Number.isNaN(begin.getTime()) ? day : begin.toISOString();
}

export function ago(text: string, now = Date.now()): string {
  const gone = (now - Date.parse(text)) / 1000;
  return gone < 5 ? "just now" : `${seconds(gone)} ago`;
}

export function between(start: string, end: string | null | undefined): number {
  return ((end ? Date.parse(end) : Date.now()) - Date.parse(start)) / 1000;
}
