// The selected entry: what it is, what can be done with it, and what it changed.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ChangeView, type Sides } from "./change-view.tsx";
import { useLatest, useMedia, useNow } from "./hooks.ts";
import { title } from "./parts.tsx";
import { type Grouped, marks, promptKey } from "./rows.ts";
import { ago, firstLine, moment, plural, visible } from "./text.ts";
import type { State } from "./timeline-store.ts";
import type { Change, Checkpoint } from "./types.ts";

export type Busy = "working" | null;

/** What is selected, and what can be done with it. */
export interface Selection {
  key: string;
  type: "disk" | "session" | "checkpoint";
  name: string;
  checkpoint: Checkpoint | null;
  /** What the entry changed. `null` if the server finds the older side. */
  sides: Sides;
  restore: string | null;
  revert: Record<string, unknown> | null;
}

const NOTHING: Selection = {
  key: "disk",
  type: "disk",
  name: "files on disk",
  checkpoint: null,
  sides: { from: null, to: null },
  restore: null,
  revert: null,
};

export function selectionOf(grouped: Grouped, key: string): Selection {
  const row = grouped.rows.find((row) => row.key === key);
  if (!row || row.type === "disk") return NOTHING;
  if (row.type === "session") {
    const name = `session ${row.session.slice(0, 12)}`;
    const own = (found: Grouped["rows"][number]) =>
      found.type === "checkpoint" &&
      found.checkpoint.session === row.session &&
      found.checkpoint.kind !== "safety";
    const oldest = grouped.rows.findLast(own);
    const begin = oldest?.type === "checkpoint" ? oldest.checkpoint.id : null;
    const sides = { from: begin === row.newest.id ? null : begin, to: row.newest.id };
    return {
      key,
      type: "session",
      name,
      checkpoint: row.newest,
      sides,
      restore: null,
      revert: { session: row.session },
    };
  }
  const { checkpoint, prompt } = row;
  const { id, kind } = checkpoint;
  const turn = kind === "turn" ? promptKey(checkpoint) : null;
  const last = prompt?.steps[0];
  const name =
    kind === "turn" && checkpoint.turn !== null
      ? `prompt ${checkpoint.turn}`
      : `${kind === "step" ? "step" : "checkpoint"} ${checkpoint.short_id}`;
  const sides = last ? { from: id, to: last.id } : { from: null, to: id };
  const isEmpty = turn !== null && !last;
  return {
    key,
    type: "checkpoint",
    name,
    checkpoint,
    sides,
    restore: id,
    revert: kind === "safety" || isEmpty || checkpoint.nearest_parent === null ? null : { what: id },
  };
}

type Against = "own" | "disk" | string;

interface Properties {
  selection: Selection;
  state: State;
  known: ReadonlyMap<string, Checkpoint>;
  busy: Busy;
  onRestore: (checkpoint: string) => void;
  onRevert: () => void;
  onPin: (checkpoint: Checkpoint) => void;
  onConversation: (checkpoint: string) => void;
  onFile: (path: string) => void;
  onLeave: () => void;
}

/** The time to wait before an entry is shown, while someone moves through the list. */
const WAIT_MS = 90;

export function Detail(properties: Properties) {
  const { state } = properties;
  const selection = useSettled(properties.selection);
  const isWide = useMedia("(min-width: 1180px)");
  const [style, setStyle] = useState<"split" | "unified" | null>(null);
  const split = style === null ? isWide : style === "split";
  const [wrap, setWrap] = useState(false);
  const [against, setAgainst] = useState<Against>("own");
  const [file, setFile] = useState<{ path: string; count: number } | null>(null);
  const [changes, setChanges] = useState<Change[]>([]);
  useEffect(() => {
    setAgainst("own");
    setFile(null);
    setChanges([]);
  }, [selection.key]);

  const sides = useMemo((): Sides => {
    if (selection.type === "disk")
      return { from: against === "own" || against === "disk" ? null : against, to: null };
    const { to } = selection.sides;
    if (against === "own") return selection.sides;
    if (against === "disk") return { from: selection.sides.to, to: null };
    return { from: against, to };
  }, [selection, against]);
  // What is on disk changes with everything that happens; the rest never changes.
  const version = useDiskVersion(sides, state);

  const target = (path: string) => setFile((before) => ({ path, count: (before?.count ?? 0) + 1 }));
  const step = (by: number) => {
    const paths = changes.map((change) => change.path);
    if (paths.length === 0) return;
    const at = file ? paths.indexOf(file.path) : by > 0 ? -1 : 0;
    const path = paths[(at + by + paths.length) % paths.length];
    if (path !== undefined) target(path);
  };
  const keys = useLatest<Record<string, () => void>>({
    d: () => setStyle(split ? "unified" : "split"),
    w: () => setWrap(!wrap),
    "]": () => step(1),
    "[": () => step(-1),
    h: () => {
      const path = file?.path ?? changes.find((change) => !change.path.endsWith("/"))?.path;
      if (path !== undefined) properties.onFile(path);
    },
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const element = event.target as HTMLElement | null;
      if (event.ctrlKey || event.metaKey || event.altKey || element?.matches("input, select, textarea"))
        return;
      if (document.querySelector("dialog[open]")) return;
      if (event.key === "Escape" && element?.closest("#detail")) properties.onLeave();
      const action = keys.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  return (
    <>
      <Head {...properties} selection={selection} />
      <div class="tools">
        <Compare selection={selection} state={state} value={against} onChange={setAgainst} />
        <span class="spring" />
        <span class="switch" role="group" aria-label="Layout of the differences">
          <button type="button" aria-pressed={split} onClick={() => setStyle("split")}>
            Split
          </button>
          <button type="button" aria-pressed={!split} onClick={() => setStyle("unified")}>
            Unified
          </button>
        </span>
        <button type="button" class="toggle" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          Wrap
        </button>
      </div>
      <ChangeView
        sides={sides}
        version={version}
        split={split}
        wrap={wrap}
        file={file}
        onTarget={target}
        onChanges={setChanges}
        onFile={properties.onFile}
      />
    </>
  );
}

/** Follows a value that may change quickly: at once if it rested, else after it rests. */
function useSettled(selection: Selection): Selection {
  const [settled, set] = useState(selection);
  useEffect(() => {
    if (selection === settled) return;
    if (selection.key === settled.key) {
      set(selection);
      return;
    }
    const timer = setTimeout(() => set(selection), WAIT_MS);
    return () => clearTimeout(timer);
  }, [selection]);
  return settled;
}

function useDiskVersion(sides: Sides, state: State): number {
  const [version, setVersion] = useState(0);
  const newest = state.checkpoints[0]?.id;
  const changed = state.status?.changes
    .map((change) => `${change.path} ${change.insertions} ${change.deletions}`)
    .join("\n");
  useEffect(() => {
    if (sides.to === null) setVersion((before) => before + 1);
  }, [newest, state.current, changed]);
  return sides.to === null ? version : 0;
}

function Head(properties: Properties & { selection: Selection }) {
  const { selection, busy } = properties;
  const { checkpoint } = selection;
  const now = useNow();
  const hasConversation = checkpoint?.agent !== null && checkpoint?.turn !== null && checkpoint !== null;
  return (
    <header class="head">
      <div class="head-text">
        <h2>{headline(selection)}</h2>
        {checkpoint && (
          <p class="facts">
            <span>{selection.name}</span>
            <span title={moment(checkpoint.timestamp)}>{ago(checkpoint.timestamp, now)}</span>
            {checkpoint.agent && <span>{firstLine(checkpoint.agent)}</span>}
            {checkpoint.tool && <span>{firstLine(checkpoint.tool)}</span>}
            <code>{checkpoint.short_id}</code>
            {marks(checkpoint).map((mark) => (
              <span key={mark} class={`mark ${mark.replace(/^\d+ /, "")}`}>
                {mark}
              </span>
            ))}
          </p>
        )}
        {checkpoint?.description && <p class="description">{visible(checkpoint.description)}</p>}
        {checkpoint?.scope && <p class="quiet">Covers {plural(checkpoint.scope.length, "path")}.</p>}
      </div>
      <div class="actions">
        {selection.restore !== null && (
          <button
            type="button"
            class="primary"
            disabled={busy !== null}
            title="Make the files as they were then (r)"
            onClick={() => selection.restore && properties.onRestore(selection.restore)}
          >
            Restore…
          </button>
        )}
        {selection.revert !== null && (
          <button
            type="button"
            disabled={busy !== null}
            title="Take back just this, and keep later work (v)"
            onClick={properties.onRevert}
          >
            Revert…
          </button>
        )}
        {hasConversation && (
          <button
            type="button"
            title="Read the conversation (c)"
            onClick={() => properties.onConversation(checkpoint.id)}
          >
            Conversation
          </button>
        )}
        {checkpoint && selection.type === "checkpoint" && (
          <button
            type="button"
            disabled={busy !== null}
            title="Keep it until you delete it (p)"
            onClick={() => properties.onPin(checkpoint)}
          >
            {checkpoint.pinned ? "Unpin" : "Pin"}
          </button>
        )}
      </div>
    </header>
  );
}

function headline(selection: Selection): string {
  if (selection.type === "disk") return "Files on disk";
  if (selection.type === "session") return `Session ${visible(selection.checkpoint?.session ?? "")}`;
  const { checkpoint } = selection;
  if (!checkpoint) return "";
  return visible(title(checkpoint)).trim() || "(empty)";
}

function Compare(properties: {
  selection: Selection;
  state: State;
  value: Against;
  onChange: (against: Against) => void;
}) {
  const { selection, state, value, onChange } = properties;
  const others = state.checkpoints
    .filter((found) => found.id !== selection.checkpoint?.id && found.kind !== "step")
    .slice(0, 200);
  const own =
    selection.type === "disk"
      ? "the last checkpoint"
      : selection.sides.from !== null
        ? "the state before this prompt"
        : "the checkpoint before it";
  return (
    <label class="compare">
      <span>Compared with</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="own">{own}</option>
        {selection.type !== "disk" && <option value="disk">the files on disk</option>}
        {others.length > 0 && (
          <optgroup label="Another checkpoint">
            {others.map((found) => (
              <option key={found.id} value={found.id}>
                {found.short_id} {firstLine(title(found)).slice(0, 60)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
}
