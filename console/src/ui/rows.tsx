// A list of any length of which only the rows in view are elements.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { unit } from "./format";

interface RowsProps<T> {
  items: readonly T[];
  label: string;
  keyOf: (item: T) => string;
  children: (item: T, index: number) => ComponentChildren;
  /** In pixels at the usual size of texts. */
  rowHeight: number;
  /** Called when the end comes into view. */
  onEnd?: (() => void) | undefined;
  class?: string;
}

const MARGIN = 8;

export function Rows<T>({ items, rowHeight: height, label, keyOf, children, onEnd, class: name = "" }: RowsProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, unit: unit() });
  const rowHeight = height * view.unit;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight, unit: unit() });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  // what comes in above the rows in view pushes them down: the view goes with them
  const anchor = useRef<{ key: string; index: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const element = box.current;
    const { current: held } = anchor;
    if (!element || !held || view.top === 0) return;
    const index = items.findIndex((item) => keyOf(item) === held.key);
    if (index >= 0 && index !== held.index) element.scrollTop += (index - held.index) * rowHeight;
  }, [items]);
  useLayoutEffect(() => {
    const index = Math.floor(view.top / rowHeight);
    const item = items[index];
    anchor.current = item && { key: keyOf(item), index };
  }, [items, view.top]);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + MARGIN);
  useEffect(() => {
    if (onEnd && last >= items.length) onEnd();
  }, [last, items.length, onEnd]);

  return (
    <div class={`rows ${name}`} ref={box} role="list" aria-label={label} tabIndex={0} style={{ "--all": `${items.length * rowHeight + 2}px` }}>
      <div class="rows-space" style={{ height: `${items.length * rowHeight}px` }} role="presentation">
        {items.slice(first, last).map((item, index) => (
          <div
            key={keyOf(item)}
            class="row"
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={first + index + 1}
            style={{ height: `${rowHeight}px`, transform: `translateY(${(first + index) * rowHeight}px)` }}
          >
            {children(item, first + index)}
          </div>
        ))}
      </div>
    </div>
  );
}
