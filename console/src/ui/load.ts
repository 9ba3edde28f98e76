// Reading from the API for as long as something is shown.
import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/http";
import { token } from "../session";

export interface Loaded<T> {
  value: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
}

/** Whether the part is still on the page: who went elsewhere before an answer came is left there. */
export function useShown(): { readonly current: boolean } {
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  return shown;
}

/**
 * What `read` answers, read again when one of `keys` changes and, with `everyMs`, again and again
 * while the page is visible and the caller is not refused. A value stays when a later reading fails.
 */
export function useLoaded<T>(
  read: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
  everyMs = 0,
): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({
    value: undefined, problem: undefined, loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const sign = token.value;
  const wasKeys = useRef<readonly unknown[]>([...keys, sign]);

  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // what one caller could see is not shown to the next
    const all = [...keys, sign];
    const changed = all.some((key, index) => key !== wasKeys.current[index]);
    wasKeys.current = all;
    setState((old) => ({ value: changed ? undefined : old.value, problem: changed ? undefined : old.problem, loading: true }));

    async function once(): Promise<void> {
      try {
        const value = await latest.current(ended.signal);
        if (!ended.signal.aborted) setState({ value, problem: undefined, loading: false });
      } catch (error) {
        if (ended.signal.aborted) return;
        const problem = asProblem(error);
        setState((old) => ({ value: old.value, problem, loading: false }));
        if (problem.isRefusal) return;
      }
      if (everyMs > 0 && !ended.signal.aborted) timer = setTimeout(again, everyMs);
    }

    function again(): void {
      if (document.visibilityState === "visible") void once();
      else document.addEventListener("visibilitychange", again, { once: true, signal: ended.signal });
    }

    void once();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [...keys, turn, sign, everyMs]);

  return { ...state, reload: () => setTurn((count) => count + 1) };
}
