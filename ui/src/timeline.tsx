// The list of sessions, prompts and steps. Only the visible rows are in the document.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useHeight, useNow } from "./hooks.ts";
import { type Lane, MAX_LANES } from "./lanes.ts";
import { Counts, title } from "./parts.tsx";
import { type Grouped, heightOf, marks, promptKey, type Row } from "./rows.ts";
import { ago, firstLine, moment, plural } from "./text.ts";
import type { State } from "./timeline-store.ts";
import type { Checkpoint } from "./types.ts";
import { Positions } from "./virtual.ts";

const MARGIN = 400;
/** Older checkpoints are loaded when fewer pixels than this are left below. */
const AHEAD = 3_000;

interface Properties {
  state: State;
  grouped: Grouped;
  folded: ReadonlySet<string>;
  selected: string;
  onSelect: (key: string) => void;
  onOpen: () => void;
  onFold: (key: string) => void;
  onOlder: () => void;
  onOldest: () => Promise<void>;
}

export function Timeline(properties: Properties) {
  const { grouped, selected, state, onSelect } = properties;
  const { rows } = grouped;
  const scroller = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const height = useHeight(scroller);
  const now = useNow();
  const positions = useMemo(() => new Positions(rows.map(heightOf)), [rows]);
  const index = useMemo(() => rows.findIndex((row) => row.key === selected), [rows, selected]);
  const [first, last] = positions.visible(scrollTop, height, MARGIN);

  useEffect(() => {
    const isNearTheEnd = positions.total - (scrollTop + height) < AHEAD;
    if (isNearTheEnd && state.next !== null && !state.loading && state.problem === null) properties.onOlder();
  }, [positions, scrollTop, height, state.next, state.loading, state.problem]);

  // New rows above must not move what is read.
  const anchor = useRef<{ key: string; offset: number } | null>(null);
  useLayoutEffect(() => {
    const element = scroller.current;
    const kept = anchor.current;
    if (!element || !kept || element.scrollTop < 8) return;
    const at = rows.findIndex((row) => row.key === kept.key);
    if (at >= 0) element.scrollTop = positions.top(at) + kept.offset;
  }, [positions]);

  const reveal = (at: number) => {
    const element = scroller.current;
    if (!element || at < 0) return;
    const [top, bottom] = [positions.top(at), positions.top(at + 1)];
    if (top < element.scrollTop) element.scrollTop = Math.max(0, top - 8);
    else if (bottom > element.scrollTop + element.clientHeight)
      element.scrollTop = bottom - element.clientHeight + 8;
  };
  useEffect(() => reveal(index), [selected]);

  const move = (to: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (row) onSelect(row.key);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / 50));
    const row = rows[index];
    const key = row?.type === "checkpoint" ? promptKey(row.checkpoint) : null;
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(index + 1),
      ArrowUp: () => move(index - 1),
      PageDown: () => move(index + page),
      PageUp: () => move(index - page),
      Home: () => move(0),
      End: () => void properties.onOldest().then(() => scrollToEnd()),
      Enter: () => properties.onOpen(),
      ArrowLeft: () => key !== null && !properties.folded.has(key) && properties.onFold(key),
      ArrowRight: () => key !== null && properties.folded.has(key) && properties.onFold(key),
    };
    const action = actions[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  };
  const [goToEnd, setGoToEnd] = useState(0);
  const scrollToEnd = () => setGoToEnd((count) => count + 1);
  useEffect(() => {
    if (goToEnd > 0) move(rows.length - 1);
  }, [goToEnd]);

  const drawn = rows.slice(first, last);
  return (
    <div
      ref={scroller}
      id="timeline"
      class="timeline"
      role="listbox"
      aria-label="Timeline, newest first"
      aria-activedescendant={index >= first && index < last ? optionId(index) : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={(event) => {
        const top = event.currentTarget.scrollTop;
        const at = positions.at(top);
        const row = rows[at];
        anchor.current = row ? { key: row.key, offset: top - positions.top(at) } : null;
        setScrollTop(top);
      }}
    >
      <div role="presentation" class="rows" style={{ height: `${positions.total}px` }}>
        {drawn.map((row, offset) => {
          const at = first + offset;
          return (
            <div
              key={row.key}
              id={optionId(at)}
              role="option"
              aria-selected={row.key === selected}
              aria-setsize={state.next === null ? rows.length : -1}
              aria-posinset={at + 1}
              class={`row ${classOf(row, state.current)} ${row.key === selected ? "selected" : ""}`}
              style={{ top: `${positions.top(at)}px`, height: `${heightOf(row)}px` }}
              onClick={() => onSelect(row.key)}
              onDblClick={properties.onOpen}
            >
              <RowContent row={row} now={now} {...properties} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function optionId(index: number): string {
  return `row-${index}`;
}

function classOf(row: Row, current: string | null): string {
  if (row.type !== "checkpoint") return row.type;
  const { checkpoint } = row;
  const here = checkpoint.id === current ? "current" : "";
  return `checkpoint kind-${checkpoint.kind} ${row.indented ? "indented" : ""} ${checkpoint.reverted ? "reverted" : ""} ${here}`;
}

function RowContent({ row, now, state, folded, onFold }: Properties & { row: Row; now: number }) {
  if (row.type === "disk") return <DiskRow state={state} />;
  if (row.type === "session") {
    return (
      <span class="session-line">
        <span class="agent">{row.agent ?? "session"}</span>
        <span class="session-name">{firstLine(row.session)}</span>
      </span>
    );
  }
  const { checkpoint, lane, prompt, indented } = row;
  const key = checkpoint.kind === "turn" ? promptKey(checkpoint) : null;
  const count = prompt?.steps.length ?? 0;
  const files = prompt?.files ?? checkpoint.files_changed.length;
  const counts = prompt ?? checkpoint;
  return (
    <>
      <Graph
        lane={lane}
        height={heightOf(row)}
        isCurrent={checkpoint.id === state.current}
        kind={checkpoint.kind}
      />
      <span class="what">
        <span class="line">
          {checkpoint.kind === "turn" && checkpoint.turn !== null && (
            <span class="number">{checkpoint.turn}</span>
          )}
          {indented && checkpoint.tool !== null && <span class="tool">{firstLine(checkpoint.tool)}</span>}
          {checkpoint.kind !== "turn" && checkpoint.kind !== "step" && (
            <span class="kind">{checkpoint.kind}</span>
          )}
          <span class="title">{firstLine(title(checkpoint)) || "(empty)"}</span>
        </span>
        {!indented && (
          <span class="line facts">
            <span title={moment(checkpoint.timestamp)}>{ago(checkpoint.timestamp, now)}</span>
            {count > 0 && key !== null && (
              <span
                class="fold"
                role="presentation"
                onClick={(event) => {
                  event.stopPropagation();
                  onFold(key);
                }}
              >
                {folded.has(key) ? "▸" : "▾"} {plural(count, "step")}
              </span>
            )}
            {files > 0 && <span>{plural(files, "file")}</span>}
            <Marks checkpoint={checkpoint} isCurrent={checkpoint.id === state.current} />
          </span>
        )}
      </span>
      {indented && <Marks checkpoint={checkpoint} isCurrent={checkpoint.id === state.current} />}
      <Counts insertions={counts.insertions} deletions={counts.deletions} />
    </>
  );
}

function DiskRow({ state }: { state: State }) {
  const changed = state.status?.changes_total ?? 0;
  const told =
    state.status === null
      ? "Looking…"
      : changed === 0
        ? "Everything is saved"
        : `${plural(changed, "unsaved change")}`;
  return (
    <>
      <span class={`disk-dot ${changed > 0 ? "unsaved" : ""}`} aria-hidden="true" />
      <span class="what">
        <span class="line title">Files on disk</span>
        <span class="line facts">{told}</span>
      </span>
    </>
  );
}

function Marks({ checkpoint, isCurrent }: { checkpoint: Checkpoint; isCurrent: boolean }) {
  const found = marks(checkpoint);
  return (
    <>
      {isCurrent && <span class="mark here">here</span>}
      {found.map((mark) => (
        <span key={mark} class={`mark ${mark.replace(/^\d+ /, "")}`}>
          {mark}
        </span>
      ))}
    </>
  );
}

const LANE = 12;

function Graph(properties: { lane: Lane; height: number; isCurrent: boolean; kind: string }) {
  const { lane, height, isCurrent, kind } = properties;
  const shown = (number: number) => Math.min(number, MAX_LANES - 1);
  const x = (number: number) => 10 + shown(number) * LANE;
  const middle = height / 2;
  const width = 20 + Math.max(shown(lane.own), ...lane.above.map(shown), ...lane.below.map(shown)) * LANE;
  return (
    <svg class="graph" width={width} height={height} aria-hidden="true" focusable="false">
      {lane.above.map((number) =>
        lane.joining.includes(number) ? (
          <path
            key={`j${number}`}
            d={`M${x(number)} 0 C${x(number)} ${middle} ${x(lane.own)} ${middle / 2} ${x(lane.own)} ${middle}`}
          />
        ) : (
          <path key={`a${number}`} d={`M${x(number)} 0V${middle}`} />
        ),
      )}
      {lane.below.map((number) => (
        <path key={`b${number}`} d={`M${x(number)} ${middle}V${height}`} />
      ))}
      <circle
        class={`dot ${kind} ${isCurrent ? "is-current" : ""}`}
        cx={x(lane.own)}
        cy={middle}
        r={kind === "step" ? 3 : 5}
      />
    </svg>
  );
}
