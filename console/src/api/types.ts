// What the API answers, as GET /openapi.json describes it. Times are RFC 3339 texts.

export type DatabaseType = "POSTGRESQL" | "MYSQL" | "ORACLE" | "SQL_SERVER" | "MONGODB" | "SQLITE";

export interface Connection {
  id: string;
  productName?: string | null;
  configName: string;
  type: DatabaseType;
  host: string;
  port: number;
  databaseName: string;
  schema?: string | null;
  userName: string;
  ssl?: { mode?: string | null } | null;
  metadata?: Record<string, unknown> | null;
  createdAt: string;
  updatedAt: string;
}

export interface ConnectionPage {
  items: Connection[];
  page: number;
  limit: number;
  total: number;
}

export interface Ssl {
  mode?: string;
  ca?: string;
  cert?: string;
  key?: string;
}

/** What creating and changing a connection send; a change sends only what changed. */
export interface ConnectionInput {
  configName?: string;
  type?: DatabaseType;
  host?: string;
  port?: number;
  databaseName?: string;
  userName?: string;
  password?: string;
  schema?: string;
  metadata?: Record<string, unknown>;
  ssl?: Ssl | null;
}

export interface Reached {
  status: string;
  message: string;
  latencyMs: number;
}

export interface Column {
  name: string;
  type: string;
  nullable: boolean;
  primaryKey: boolean;
}

export interface Table {
  name: string;
  fields: string[];
  columns?: Column[];
  estimatedRows?: number | null;
}

export interface Schema {
  id: string;
  configName: string;
  databaseName: string;
  type: DatabaseType;
  tables: Table[];
}

export type JobStatus = "pending" | "processing" | "completed" | "failed" | "cancelled";

export interface Failure {
  message: string;
  code: string;
  source?: string | null;
  stage?: string | null;
  reason?: string | null;
}

export interface JobSummary {
  id: string;
  status: JobStatus;
  source?: string | null;
  connections: string[];
  createdAt: string;
  startedAt?: string | null;
  completedAt?: string | null;
  sizeBytes?: number | null;
  rowCount?: number | null;
  resultDeletedAt?: string | null;
  cancelRequestedAt?: string | null;
  waitingReason?: string | null;
  error?: Failure | null;
}

export interface JobPage {
  items: JobSummary[];
  nextCursor?: string | null;
  limit: number;
}

/** What the stream of events tells. */
export interface EndedJob {
  jobId: string;
  status: JobStatus;
  error?: Failure | null;
  sizeBytes?: number | null;
  rowCount?: number | null;
  completedAt: string;
}

export interface Attempt {
  attempt: number;
  startedAt: string;
  endedAt?: string | null;
  worker: string;
  errorCode?: string | null;
}

export type Conditions = Record<string, unknown[]>;
export type MappedFields = Record<string, Record<string, string[]>>;
export type Filters = Record<string, Record<string, Record<string, Conditions>>>;

export interface Job {
  id: string;
  status: JobStatus;
  metadata?: Record<string, unknown> | null;
  mappedFields: MappedFields;
  filters?: Filters | null;
  options?: Record<string, unknown> | null;
  error?: Failure | null;
  resultPath?: string | null;
  resultHmac?: string | null;
  sources?: Record<string, { snapshot?: boolean | null; replacedCharacters?: number | null }> | null;
  createdAt: string;
  startedAt?: string | null;
  completedAt?: string | null;
  sizeBytes?: number | null;
  rowCount?: number | null;
  resultDeletedAt?: string | null;
  cancelRequestedAt?: string | null;
  waitingReason?: string | null;
  progress?: Record<string, Record<string, { rows: number; bytes: number }>> | null;
  attempts?: Attempt[] | null;
}

export interface JobRequest {
  dataRequest: { mappedFields: MappedFields; filters?: Filters; options?: Record<string, unknown> };
  metadata: Record<string, unknown>;
}

export interface CreatedJob {
  jobId: string;
  status: string;
  createdAt: string;
  message: string;
}

export interface Limits {
  maxDatasources: number;
  maxTablesPerDatasource: number;
  maxFieldsPerTable: number;
  maxConcurrency: number;
  timeout: number;
  maxResultBytes: number;
}

export interface ValidJob {
  valid: boolean;
  sources: Record<
    string,
    { type: string; tables: Record<string, { fields: string[]; estimatedRows?: number | null }> }
  >;
  limits: Limits;
  requestHash: string;
}

export interface Preview {
  jobId: string;
  limit: number;
  rowCounts: Record<string, Record<string, number>>;
  rows: Record<string, Record<string, Record<string, unknown>[]>>;
}

export interface ProcessFacts {
  host: string;
  pid: number;
  role: string;
  version: string;
  startedAt: string;
}

export interface ProbedMinute {
  minute: string;
  probes: number;
  failures: number;
  slowestMs: number;
  error?: string | null;
}

export interface Dependency {
  name: string;
  status: string;
  optional: boolean;
  probedAt: string;
  latencyMs: number;
  tls?: boolean | null;
  error?: string | null;
  reason?: string | null;
  breakerState?: string | null;
  history: ProbedMinute[];
}

export interface Dependencies {
  process: ProcessFacts;
  draining: boolean;
  dependencies: Dependency[];
}

export interface Queues {
  queues: { name: string; purpose: string; ready?: number | null; consumers?: number | null }[];
}

export interface Outbox {
  pendingEvents: number;
  oldestEventSeconds: number;
  undispatchedJobs: number;
  oldestUndispatchedSeconds: number;
  dispatchedJobs: number;
  oldestDispatchedSeconds: number;
}

export interface OperatedJob {
  id: string;
  status: JobStatus;
  source?: string | null;
  connections: string[];
  createdAt: string;
  startedAt?: string | null;
  completedAt?: string | null;
  dispatchedAt?: string | null;
  dueAt?: string | null;
  waitingReason?: string | null;
  cancelRequestedAt?: string | null;
  owner?: string | null;
  leaseUntil?: string | null;
  attempt: number;
  takeovers: number;
  rows: number;
  bytes: number;
  error?: Failure | null;
}

export interface OperatedJobs {
  counts: Record<JobStatus, number> & { parked: number; countedUpTo: number };
  running: OperatedJob[];
  waiting: OperatedJob[];
  failed: OperatedJob[];
}

export interface ActivityMinute {
  minute: string;
  completed: number;
  failed: number;
  cancelled: number;
  averageSeconds?: number | null;
  longestSeconds?: number | null;
}

export interface ConnectionBreaker {
  connectionId: string;
  configName: string;
  stage: string;
  reason: string;
  failures: number;
  openings: number;
  changedAt: string;
  retryAt?: string | null;
}

export interface Breakers {
  process: ProcessFacts;
  adapters: { name: string; state: string }[];
  connections: ConnectionBreaker[];
  openConnections: number;
}

export interface Actors {
  process: ProcessFacts;
  actors: {
    name: string;
    state: string;
    restarts: number;
    lastCrash?: string | null;
    lastCrashAt?: string | null;
  }[];
}

export interface DeadLetter {
  position: number;
  jobId?: string | null;
  genuine: boolean;
  reason: string;
  exchange: string;
  routingKey: string;
  sentAt?: string | null;
  bytes: number;
}

export interface DeadLetters {
  total: number;
  examined: number;
  stoppedBy?: string | null;
  letters: DeadLetter[];
}

export interface Redriven {
  dispatched: number;
  stoppedBy?: string | null;
  letters: { position: number; jobId?: string | null; result: string }[];
}

export interface AuditEntry {
  id: string;
  time: string;
  actor: string;
  action: string;
  target: string;
  product: string;
  requestId: string;
  outcome: string;
}

export interface AuditPage {
  items: AuditEntry[];
  nextCursor?: string | null;
  limit: number;
}

/** One entry of what POST …/validate finds missing. */
export interface Mismatch {
  type: string;
  dataSourceId: string;
  table?: string | null;
  field?: string | null;
  candidates?: string[] | null;
  stage?: string | null;
  reason?: string | null;
}
