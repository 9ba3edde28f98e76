// Small charts as SVG; each has its numbers as a table for those who do not see it.
import type { ComponentChildren, RefObject } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { texts } from "../texts";
import { clock, unit } from "./format";

export interface Series {
  name: string;
  /** A class of styles.css, which gives the colour. */
  tone: string;
  values: (number | null)[];
}

interface ChartProps {
  title: string;
  /** RFC 3339 times, one a value. */
  times: string[];
  series: Series[];
}

const HEIGHT = 160;
const LEFT = 36;
const BOTTOM = 20;

/** As wide as its place is, so that its texts are as large as others. */
function useWidth() {
  const box = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setWidth(Math.max(200, Math.round(element.clientWidth / unit())));
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    look();
    return () => sizes.disconnect();
  }, []);
  return { box, width };
}

export function BarChart({ title, times, series }: ChartProps) {
  const { box, width } = useWidth();
  const sums = times.map((_, index) => series.reduce((sum, each) => sum + (each.values[index] ?? 0), 0));
  const top = niceTop(Math.max(1, ...sums));
  const step = (width - LEFT) / Math.max(1, times.length);
  return (
    <Frame title={title} times={times} series={series} top={top} box={box} width={width}>
      {times.map((time, index) => {
        let base = HEIGHT - BOTTOM;
        return series.map((each) => {
          const height = ((each.values[index] ?? 0) / top) * (HEIGHT - BOTTOM - 8);
          base -= height;
          return height > 0 ? <rect key={`${time}${each.name}`} class={`fill ${each.tone}`} x={LEFT + index * step + 0.5} y={base} width={Math.max(1, step - 1.5)} height={height}><title>{`${clock(time)} · ${each.values[index]} ${each.name}`}</title></rect> : null;
        });
      })}
    </Frame>
  );
}

export function LineChart({ title, times, series }: ChartProps) {
  const { box, width } = useWidth();
  const known = series.flatMap((each) => each.values).filter((value): value is number => value !== null);
  const top = niceTop(Math.max(0.1, ...known));
  const step = (width - LEFT) / Math.max(1, times.length);
  const at = (value: number) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 8);
  return (
    <Frame title={title} times={times} series={series} top={top} box={box} width={width}>
      {series.map((each) => {
        const points = each.values.map((value, index) => (value === null ? null : { x: LEFT + (index + 0.5) * step, y: at(value) }));
        const path = points.map((point, index) => (point ? `${points[index - 1] ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}` : "")).join("");
        return (
          <g key={each.name}>
            <path class={`line ${each.tone}`} d={path} />
            {points.map((point, index) => (point ? <circle key={index} class={`fill ${each.tone}`} cx={point.x} cy={point.y} r={2.5} /> : null))}
          </g>
        );
      })}
    </Frame>
  );
}

function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value) ?? value;
}

interface FrameProps extends ChartProps {
  top: number;
  box: RefObject<SVGSVGElement | null>;
  width: number;
  children: ComponentChildren;
}

function Frame({ title, times, series, top, box, width, children }: FrameProps) {
  const id = useId();
  const marks = [0, Math.floor(times.length / 2), times.length - 1].filter((each, index, all) => each >= 0 && all.indexOf(each) === index);
  const step = (width - LEFT) / Math.max(1, times.length);
  return (
    <figure class="chart">
      <figcaption id={id}>
        <span>{title}</span>
        {series.map((each) => <span key={each.name} class={`legend ${each.tone}`}>{each.name}</span>)}
      </figcaption>
      <svg ref={box} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-labelledby={id}>
        {[0, top / 2, top].map((value) => {
          const y = HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 8);
          return (
            <g key={value}>
              <line class="grid" x1={LEFT} x2={width} y1={y} y2={y} />
              <text x={LEFT - 5} y={y + 4} text-anchor="end">{Number(value.toFixed(2))}</text>
            </g>
          );
        })}
        {marks.map((index) => (
          <text key={index} x={LEFT + (index + 0.5) * step} y={HEIGHT - 4} text-anchor={index === 0 ? "start" : index === times.length - 1 ? "end" : "middle"}>{clock(times[index] ?? "")}</text>
        ))}
        {children}
      </svg>
      <details>
        <summary>{texts.operations.table}</summary>
        <div class="table-box short" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead><tr><th scope="col">{texts.operations.auditTime}</th>{series.map((each) => <th scope="col" key={each.name}>{each.name}</th>)}</tr></thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}><td>{clock(time)}</td>{series.map((each) => <td class="number" key={each.name}>{each.values[index] ?? ""}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

/** One mark a minute: its height the slowest probe, its colour whether one failed. */
export function Spark({ label, minutes }: { label: string; minutes: { minute: string; failures: number; slowestMs: number }[] }) {
  const top = Math.max(1, ...minutes.map((each) => each.slowestMs));
  return (
    <svg class="spark" viewBox="0 0 240 28" role="img" aria-label={label} preserveAspectRatio="none">
      {minutes.map((each, index) => {
        const height = each.failures > 0 ? 26 : 3 + (each.slowestMs / top) * 23;
        return <rect key={each.minute} class={`fill ${each.failures > 0 ? "bad" : "good"}`} x={index * 4 + (60 - minutes.length) * 4} y={28 - height} width={3} height={height} />;
      })}
    </svg>
  );
}
