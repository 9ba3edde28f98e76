// Short news of what has been done, read out to those who do not see it.
import { signal } from "@preact/signals";
import { visitor } from "../session";

interface Toast {
  id: number;
  kind: "good" | "bad";
  text: string;
}

const SHOWN_MS = 6000;
const shown = signal<Toast[]>([]);
let next = 1;
visitor.subscribe(() => {
  shown.value = [];
});

export function tell(text: string, kind: Toast["kind"] = "good"): void {
  const id = next++;
  shown.value = [...shown.value.slice(-3), { id, kind, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((toast) => toast.id !== id);
  }, SHOWN_MS);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((toast) => <div key={toast.id} class={`toast ${toast.kind}`}>{toast.text}</div>)}
    </div>
  );
}
