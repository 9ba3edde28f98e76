// All connections: found, tested, changed and deleted.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/http";
import { connections, operations } from "../api/operations";
import type { Connection, ConnectionBreaker, ConnectionPage } from "../api/types";
import { href, place, replaceQuery } from "../router";
import { isProduct, product, visitor } from "../session";
import { texts } from "../texts";
import { count } from "../ui/format";
import { useLoaded, useShown } from "../ui/load";
import { Badge, Button, Dialog, Empty, Failed, Field, Loading } from "../ui/parts";
import { tell } from "../ui/toasts";

const MOST = 5000;
const t = texts.connections;

/** `breaker`: when the service's own view of the connection had last changed before the test. */
type Tested = ({ ms: number } | { problem: Problem }) & { breaker: string | undefined };
const tested = signal<Record<string, Tested>>({});
/** The last test of each: of an earlier one, or of what was changed since, the answer says nothing. */
const asked = new Map<string, symbol>();
visitor.subscribe(() => {
  asked.clear();
  tested.value = {};
});

/** Every connection that the caller may see, over all pages of the list. */
export const allConnections = (abort?: AbortSignal) => allPages((page) => connections.list(page, abort));

async function allPages(read: (page: number) => Promise<ConnectionPage>): Promise<Connection[]> {
  const found: Connection[] = [];
  for (let page = 1; found.length < MOST; page += 1) {
    const answer = await read(page);
    found.push(...answer.items);
    if (answer.items.length < answer.limit || found.length >= answer.total) break;
  }
  return found;
}

/** That there may be more than are read. */
export function MostConnections({ listed }: { listed: number }) {
  return listed >= MOST ? <p class="hint" role="status">{t.most(count(MOST))}</p> : null;
}

export function ConnectionsPage() {
  const list = useLoaded((abort) => allConnections(abort), [product.value]);
  // who may read connections need not be one who may read operations
  const breakers = useLoaded((abort) => operations.breakers(abort).catch(() => null), [], 10_000);
  const [removing, setRemoving] = useState<Connection>();
  const [assigning, setAssigning] = useState<Connection>();
  const words = place.value.query.get("q") ?? "";
  const type = place.value.query.get("type") ?? "";
  const down = new Map((breakers.value?.connections ?? []).map((each) => [each.connectionId, each]));
  const all = list.value ?? [];
  // of the others without a product nobody can be the owner: they are the operator's
  const areOwnerless = all.some((each) => !each.productName);
  const unassigned = useLoaded(
    (abort) => (areOwnerless ? allPages((page) => connections.unassigned(page, abort)) : Promise.resolve([])), [areOwnerless],
  );
  // what has the focus may be gone with the row
  const isDone = useRef(false);
  useEffect(() => {
    if (!isDone.current) return;
    isDone.current = false;
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  }, [list.value]);
  function done(connection: Connection): void {
    isDone.current = true;
    setRemoving((open) => other(open, connection));
    setAssigning((open) => other(open, connection));
    list.reload();
  }
  const assignable = unassigned.value && new Set(unassigned.value.map((each) => each.id));
  const shown = all.filter((each) => (!type || each.type === type) && matches(each, words));
  return (
    <>
      <div class="page-head">
        <h1>{t.title}</h1>
        <a class="button primary" href={href(["connections", "new"])}>{t.add}</a>
      </div>
      {list.problem ? <Failed problem={list.problem}><Button onClick={list.reload}>{texts.common.reload}</Button></Failed> : null}
      {list.value ? (
        all.length === 0 ? <NoConnections /> : (
          <>
            <div class="filters">
              <Field label={t.searchLabel}>
                {(ids) => <input {...ids} type="search" value={words} onInput={(event) => replaceQuery({ q: event.currentTarget.value, type })} />}
              </Field>
              <Field label={t.typeLabel}>
                {(ids) => (
                  <select {...ids} value={type} onChange={(event) => replaceQuery({ q: words, type: event.currentTarget.value })}>
                    <option value="">{texts.common.all}</option>
                    {[...new Set(all.map((each) => each.type))].sort().map((each) => <option key={each}>{each}</option>)}
                  </select>
                )}
              </Field>
              <p class="faint" role="status">{t.count(shown.length, all.length)}</p>
              <MostConnections listed={all.length} />
            </div>
            {shown.length === 0 ? <Empty title={t.noMatch} /> : (
              <div class="table-box">
                <table class="stacks">
                  <thead>
                    <tr><th scope="col">{t.name}</th><th scope="col">{t.database}</th><th scope="col">{texts.app.product}</th><th scope="col">{t.state}</th><th scope="col"><span class="visually-hidden">{texts.common.more}</span></th></tr>
                  </thead>
                  <tbody>
                    {shown.map((each) => (
                      <Row
                        key={each.id}
                        connection={each}
                        breaker={down.get(each.id)}
                        isInternal={!each.productName && assignable?.has(each.id) === false}
                        onAssign={!each.productName && assignable?.has(each.id) ? () => setAssigning(each) : undefined}
                        onRemove={() => setRemoving(each)}
                      />
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </>
        )
      ) : list.loading ? <Loading /> : null}
      {removing ? (
        <RemoveDialog connection={removing} onClose={() => setRemoving(undefined)} onRemoved={() => done(removing)} />
      ) : null}
      {assigning ? (
        <AssignDialog
          connection={assigning}
          onClose={() => setAssigning(undefined)}
          onAssigned={() => done(assigning)}
        />
      ) : null}
    </>
  );
}

function NoConnections() {
  if (product.value === "") return <Empty title={t.empty}><p>{t.emptyText}</p></Empty>;
  return <Empty title={t.emptyOf(product.value)}><p>{t.emptyOfText}</p></Empty>;
}

/** The dialog that is open stays, unless it is the one of what is done. */
function other(open: Connection | undefined, done: Connection): Connection | undefined {
  return open?.id === done.id ? undefined : open;
}

function matches(connection: Connection, words: string): boolean {
  const text = [connection.configName, connection.host, connection.databaseName, connection.productName, connection.type].join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

interface RowProps {
  connection: Connection;
  breaker: ConnectionBreaker | undefined;
  /** The operator's own: it is no record that could be changed. */
  isInternal: boolean;
  onAssign: (() => void) | undefined;
  onRemove: () => void;
}

function Row({ connection, breaker, isInternal, onAssign, onRemove }: RowProps) {
  const { id, configName } = connection;
  const where = connection.type === "SQLITE" ? connection.databaseName : `${connection.host}:${connection.port}/${connection.databaseName}`;
  return (
    <tr>
      <td><strong>{configName}</strong><br /><span class="faint">{connection.type}</span></td>
      <td>{where}</td>
      <td data-label={texts.app.product}>
        {connection.productName ?? <span class="faint">{isInternal ? t.internal : texts.common.none}</span>}
        {onAssign ? <> <Button onClick={onAssign} label={t.assignLabel(configName)}>{t.assign}</Button></> : null}
      </td>
      <td data-label={t.state}><State id={id} breaker={breaker} /></td>
      <td>
        <div class="actions">
          <Button onClick={() => test(id, breaker)} label={`${t.test} ${configName}`}>{t.test}</Button>
          <a class="button" href={href(["connections", id, "schema"])} aria-label={`${t.schema} ${configName}`}>{t.schema}</a>
          {isInternal ? null : (
            <>
              <a class="button" href={href(["connections", id, "edit"])} aria-label={`${t.edit} ${configName}`}>{t.edit}</a>
              <Button kind="danger" onClick={onRemove} label={`${t.remove} ${configName}`}>{t.remove}</Button>
            </>
          )}
        </div>
      </td>
    </tr>
  );
}

function State({ id, breaker }: { id: string; breaker: ConnectionBreaker | undefined }) {
  const last = tested.value[id];
  // what the service has found out since counts
  const result = breaker && breaker.changedAt !== last?.breaker ? undefined : last;
  if (result && "problem" in result) {
    const { problem } = result;
    return (
      <div role="status">
        <Badge tone="bad">{problem.stage ? t.failed(problem.stage) : problem.title}</Badge>
        <p class="hint">{problem.stage ? texts.failures.advice(problem.stage, problem.reason) : problem.message}</p>
      </div>
    );
  }
  if (result) return <span role="status"><Badge tone="good">{t.reached(result.ms)}</Badge></span>;
  if (breaker) {
    return (
      <>
        <Badge tone="bad">{t.down}</Badge>
        <p class="hint">{texts.failures.at(breaker.stage, breaker.reason)} {texts.failures.advice(breaker.stage, breaker.reason)}</p>
      </>
    );
  }
  return <span class="faint">{t.untested}</span>;
}

/** Tries the connection and keeps what came of it for the list. */
async function test(id: string, known: ConnectionBreaker | undefined): Promise<void> {
  const breaker = known?.changedAt;
  const mine = Symbol();
  asked.set(id, mine);
  let result: Tested;
  try {
    result = { ms: (await connections.test(id)).latencyMs, breaker };
  } catch (error) {
    result = { problem: asProblem(error), breaker };
  }
  if (asked.get(id) === mine) tested.value = { ...tested.value, [id]: result };
}

export function forgetTest(id: string): void {
  asked.delete(id);
  const { [id]: _gone, ...rest } = tested.value;
  tested.value = rest;
}

function RemoveDialog({ connection, onClose, onRemoved }: { connection: Connection; onClose: () => void; onRemoved: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const isShown = useShown();
  async function remove(): Promise<void> {
    try {
      await connections.remove(connection.id);
    } catch (error) {
      const found = asProblem(error);
      if (isShown.current) setProblem(found);
      else tell(t.notRemoved(connection.configName, found.message), "bad");
      return;
    }
    tell(t.removed(connection.configName));
    onRemoved();
  }
  return (
    <Dialog title={t.removeTitle(connection.configName)} onClose={onClose}>
      <p>{t.removeText}</p>
      {problem ? (
        <Failed problem={problem}>
          {problem.status === 409 ? (
            <p>{t.conflict} <a href={href(["jobs"], { connection: connection.configName, status: "processing" })}>{t.conflictJobs}</a></p>
          ) : null}
        </Failed>
      ) : null}
      <div class="actions">
        <Button kind="danger" onClick={remove}>{t.remove}</Button>
        <Button onClick={onClose}>{texts.common.cancel}</Button>
      </div>
    </Dialog>
  );
}

function AssignDialog({ connection, onClose, onAssigned }: { connection: Connection; onClose: () => void; onAssigned: () => void }) {
  const { id, configName } = connection;
  const [owner, setOwner] = useState(product.value);
  const [problem, setProblem] = useState<Problem>();
  const wanted = owner.trim();
  const error = wanted === "" || isProduct(wanted) ? undefined : texts.form.errors.product;
  async function assign(): Promise<void> {
    setProblem(undefined);
    try {
      const assigned = await connections.assign(id, wanted);
      tell(t.assigned(configName, assigned.productName ?? wanted));
    } catch (refused) {
      setProblem(asProblem(refused));
      return;
    }
    onAssigned();
  }
  return (
    <Dialog title={t.assignTitle(configName)} onClose={onClose}>
      <p>{t.assignText}</p>
      {problem ? <Failed problem={problem} /> : null}
      <Field label={texts.app.product} error={error} required>
        {(ids) => <input {...ids} autocomplete="off" value={owner} onInput={(event) => setOwner(event.currentTarget.value)} />}
      </Field>
      <div class="actions">
        <Button kind="primary" disabled={!isProduct(wanted)} onClick={assign}>{t.assign}</Button>
        <Button onClick={onClose}>{texts.common.cancel}</Button>
      </div>
    </Dialog>
  );
}
