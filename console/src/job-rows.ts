// The rows of the list of jobs, as new pages and the endings of single jobs change them.
import type { EndedJob, JobPage, JobSummary } from "./api/types";

/** The newest page as it is now, and behind it what was read of older ones. */
export function renewed(newest: JobPage, old: JobSummary[]): JobSummary[] {
  const oldest = newest.items.at(-1)?.createdAt;
  if (!newest.nextCursor || oldest === undefined) return newest.items;
  return [...newest.items, ...without(old, newest.items).filter((job) => job.createdAt <= oldest)];
}

/** Whether jobs that nobody has read may lie between: more have come than the newest page holds. */
export function leavesGap(newest: JobPage, old: JobSummary[]): boolean {
  const oldest = newest.items.at(-1)?.createdAt;
  const first = old[0]?.createdAt;
  return Boolean(newest.nextCursor) && oldest !== undefined && first !== undefined && oldest > first;
}

export function without(jobs: JobSummary[], others: JobSummary[]): JobSummary[] {
  const known = new Set(others.map((job) => job.id));
  return jobs.filter((job) => !known.has(job.id));
}

/** The ended job in its place; away where the list shows other statuses (with commas between) only. */
export function withEnded(rows: JobSummary[], ended: EndedJob, statuses: string | undefined): JobSummary[] {
  const isShown = !statuses || statuses.split(",").includes(ended.status);
  return rows.flatMap((row) => {
    if (row.id !== ended.jobId) return [row];
    const { waitingReason: _waits, error: _error, ...rest } = row;
    const { status, completedAt, error, sizeBytes, rowCount } = ended;
    return isShown ? [{ ...rest, status, completedAt, error: error ?? null, sizeBytes: sizeBytes ?? null, rowCount: rowCount ?? null }] : [];
  });
}

/** Those of `read` as they were `found` when they were read again; without what was found no more. */
export function withAgain(rows: JobSummary[], read: JobSummary[], found: JobSummary[]): JobSummary[] {
  const wanted = new Set(read.map((job) => job.id));
  const again = new Map(found.map((job) => [job.id, job]));
  return rows.flatMap((row) => (wanted.has(row.id) ? (again.get(row.id) ?? []) : [row]));
}

export function isActive(job: JobSummary): boolean {
  return job.status === "pending" || job.status === "processing";
}
