// The whole page: the timeline on one side, the selected change on the other.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isAborted, read, sentence, useWorkspaceStore, write } from "./api.ts";
import { ConversationDialog } from "./conversation-dialog.tsx";
import { type Busy, Detail, selectionOf } from "./detail.tsx";
import { FileDialog } from "./file-dialog.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { HelpDialog } from "./help-dialog.tsx";
import { useLatest, useMedia, useTimeline } from "./hooks.ts";
import { type Connection, follow } from "./live.ts";
import { title } from "./parts.tsx";
import { type Asked, PlanDialog } from "./plan-dialog.tsx";
import { group, promptKey } from "./rows.ts";
import { firstLine, plural, visible } from "./text.ts";
import { Timeline } from "./timeline.tsx";
import { NO_FILTERS, TimelineStore } from "./timeline-store.ts";
import type { Checkpoint, Plan, Workspace } from "./types.ts";

type Open =
  | { type: "plan"; asked: Asked }
  | { type: "file"; path: string }
  | { type: "conversation"; checkpoint: string }
  | { type: "help" }
  | null;

interface Told {
  text: string;
  kind: "done" | "problem";
  /** The request that takes it back. */
  back: "undo" | "redo" | null;
}

const store = new TimelineStore();

export function App() {
  const state = useTimeline(store);
  const [workspaces, setWorkspaces] = useState<Workspace[]>([]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [connection, setConnection] = useState<Connection>("connecting");
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [selected, setSelected] = useState("disk");
  const [open, setOpen] = useState<Open>(null);
  const [told, setTold] = useState<Told | null>(null);
  const [busy, setBusy] = useState<Busy>(null);
  const isNarrow = useMedia("(max-width: 760px)");
  const [isDetailShown, setIsDetailShown] = useState(false);
  const search = useRef<HTMLInputElement>(null);

  const isFiltered = Object.values(state.filters).some((value) => value !== "");
  const shown = useMemo(() => {
    const { agent } = state.filters;
    return agent === "" ? state.checkpoints : state.checkpoints.filter((found) => found.agent === agent);
  }, [state.checkpoints, state.filters]);
  const grouped = useMemo(() => group(shown, folded, !isFiltered), [shown, folded, isFiltered]);
  const known = useMemo(
    () => new Map(state.checkpoints.map((found) => [found.id, found])),
    [state.checkpoints],
  );
  const selection = useMemo(() => selectionOf(grouped, selected), [grouped, selected]);

  useEffect(() => {
    void store.restart(NO_FILTERS).then(selectNewest);
    void store.readStatus();
    read<{ workspaces: Workspace[] }>("workspaces").then(
      (found) => setWorkspaces(found.workspaces),
      () => setWorkspaces([]),
    );
  }, []);
  useEffect(() => follow({ onNews: () => void store.refresh(), onConnection: setConnection }), [chosen]);
  useEffect(() => {
    const onFocus = () => void store.readStatus();
    addEventListener("focus", onFocus);
    return () => removeEventListener("focus", onFocus);
  }, []);
  const own = workspaces.find((found) => found.store === chosen) ?? workspaces[0];
  useEffect(() => {
    document.title = own ? `${visible(own.path.split("/").at(-1) ?? own.path)} · Backtrail` : "Backtrail";
  }, [own]);

  const selectNewest = () => {
    const newest =
      store.state.checkpoints.find((found) => found.kind === "turn") ?? store.state.checkpoints[0];
    setSelected((before) => (before === "disk" && newest ? newest.id : before));
  };
  const select = (key: string) => {
    setSelected(key);
    if (isNarrow && document.activeElement?.id !== "timeline") setIsDetailShown(true);
  };
  const chooseWorkspace = (found: Workspace) => {
    useWorkspaceStore(found.store);
    setChosen(found.store);
    setSelected("disk");
    void store.restart(NO_FILTERS).then(selectNewest);
    void store.readStatus();
  };
  const fold = (key: string) => {
    const next = new Set(folded);
    if (!next.delete(key)) next.add(key);
    setFolded(next);
    const row = grouped.rows.find((found) => found.key === selected);
    if (row?.type === "checkpoint" && row.indented && promptKey(row.checkpoint) === key) {
      const turn = grouped.rows.find(
        (found) =>
          found.type === "checkpoint" &&
          found.checkpoint.kind === "turn" &&
          promptKey(found.checkpoint) === key,
      );
      if (turn) setSelected(turn.key);
    }
  };

  const perform = async (work: () => Promise<Told | null>) => {
    setBusy("working");
    try {
      setTold(await work());
    } catch (error) {
      if (!isAborted(error)) setTold({ text: sentence(error), kind: "problem", back: null });
    }
    setBusy(null);
    await store.refresh();
  };
  const takeBack = (request: "undo" | "redo") =>
    perform(async () => {
      const done = await write<Plan>(request, {});
      if (!done.applied) return { text: `There is nothing to ${request}.`, kind: "done", back: null };
      const files = plural(done.changes_total, "file");
      return request === "undo"
        ? { text: `Undone: ${files} as before.`, kind: "done", back: "redo" }
        : { text: `Done again: ${files}.`, kind: "done", back: "undo" };
    });
  const save = () =>
    perform(async () => {
      const saved = await write<{ created: boolean }>("save", {});
      return {
        text: saved.created ? "Saved." : "Nothing changed since the last checkpoint.",
        kind: "done",
        back: null,
      };
    });
  const pin = (checkpoint: Checkpoint) =>
    perform(async () => {
      const pinned = !checkpoint.pinned;
      const answer = await write<{ checkpoint: Checkpoint }>("pin", { checkpoint: checkpoint.id, pinned });
      store.replace(answer.checkpoint);
      return {
        text: pinned ? "Pinned: it is kept until you delete it." : "No longer pinned.",
        kind: "done",
        back: null,
      };
    });
  const restore = (checkpoint: string, path?: string) => {
    const found = known.get(checkpoint);
    const what = found ? `“${shortened(firstLine(title(found)))}”` : checkpoint.slice(0, 8);
    const of = path === undefined ? "Restore the files of" : `Restore ${visible(path)} as of`;
    const body = path === undefined ? { checkpoint } : { checkpoint, paths: [path] };
    setOpen({
      type: "plan",
      asked: { title: `${of} ${what}`, verb: "Restore", planner: "restore/plan", body },
    });
  };
  const revert = () => {
    const body = selection.revert;
    if (!body) return;
    const asked: Asked = { title: `Revert ${selection.name}`, verb: "Revert", planner: "revert/plan", body };
    setOpen({ type: "plan", asked });
  };
  const applied = (plan: Plan) => {
    const verb = open?.type === "plan" ? open.asked.verb : "Restore";
    setOpen(null);
    const conflicts =
      plan.conflicts.length > 0 ? ` ${plural(plan.conflicts.length, "conflict")} left as they are.` : "";
    const text = `${verb === "Revert" ? "Reverted" : "Restored"} ${plural(plan.changes_total, "file")}.${conflicts}`;
    setTold({ text, kind: "done", back: plan.safety === null ? null : "undo" });
    void store.refresh();
  };

  const actions = useLatest<Record<string, () => void>>({
    j: () => step(1),
    k: () => step(-1),
    "/": () => search.current?.focus(),
    r: () => selection.restore && restore(selection.restore),
    v: revert,
    u: () => void takeBack("undo"),
    s: () => void save(),
    p: () => selection.checkpoint && void pin(selection.checkpoint),
    c: () => selection.checkpoint && setOpen({ type: "conversation", checkpoint: selection.checkpoint.id }),
    "?": () => setOpen({ type: "help" }),
  });
  const step = (by: number) => {
    const at = grouped.rows.findIndex((row) => row.key === selected);
    const row = grouped.rows[Math.max(0, Math.min(grouped.rows.length - 1, at + by))];
    if (row) setSelected(row.key);
    document.getElementById("timeline")?.focus({ preventScroll: true });
  };
  const isOpen = useLatest(open !== null || busy !== null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isOpen.current || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement | null;
      if (target?.matches("input, select, textarea")) return;
      const action = actions.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  const focusDetail = () => {
    setIsDetailShown(true);
    setTimeout(() => document.getElementById("detail")?.focus(), 0);
  };
  return (
    <>
      <header class="top">
        <h1>
          <img src="/icon.svg" alt="" width="22" height="22" /> Backtrail
        </h1>
        {workspaces.length > 1 ? (
          <select
            class="workspace"
            aria-label="Workspace"
            value={own?.store}
            onChange={(event) => {
              const found = workspaces.find((known) => known.store === event.currentTarget.value);
              if (found) chooseWorkspace(found);
            }}
          >
            {workspaces.map((found) => (
              <option key={found.store} value={found.store}>
                {visible(found.path)}
              </option>
            ))}
          </select>
        ) : (
          <span class="workspace">{own ? visible(own.path) : ""}</span>
        )}
        <span class="spring" />
        <ConnectionMark connection={connection} />
        <button
          type="button"
          onClick={() => void save()}
          disabled={busy !== null}
          title="Save a checkpoint now (s)"
        >
          Save
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Keys and help"
          onClick={() => setOpen({ type: "help" })}
        >
          <span aria-hidden="true">?</span>
        </button>
      </header>
      <Ended connection={connection} />
      <main class={isNarrow ? (isDetailShown ? "narrow detail-shown" : "narrow") : ""}>
        <section class="list" aria-label="Timeline" hidden={isNarrow && isDetailShown}>
          <FilterBar
            state={state}
            search={search}
            onFilters={(filters) => {
              void store.restart(filters);
            }}
            onLeave={() => document.getElementById("timeline")?.focus()}
          />
          {state.problem && <p class="note problem">{state.problem}</p>}
          <Timeline
            state={state}
            grouped={grouped}
            folded={folded}
            selected={selected}
            onSelect={select}
            onOpen={focusDetail}
            onFold={fold}
            onOlder={() => void store.older()}
            onOldest={() => store.oldest()}
          />
          <p class="foot" role="status">
            {state.loading ? "Loading…" : footer(shown.length, state.next !== null, isFiltered)}
          </p>
        </section>
        <section
          id="detail"
          class="detail"
          aria-label="Selected change"
          tabIndex={-1}
          hidden={isNarrow && !isDetailShown}
        >
          {isNarrow && (
            <button type="button" class="back" onClick={() => setIsDetailShown(false)}>
              ‹ Timeline
            </button>
          )}
          <Detail
            selection={selection}
            state={state}
            known={known}
            busy={busy}
            onRestore={restore}
            onRevert={revert}
            onPin={(checkpoint) => void pin(checkpoint)}
            onConversation={(checkpoint) => setOpen({ type: "conversation", checkpoint })}
            onFile={(path) => setOpen({ type: "file", path })}
            onLeave={() => {
              setIsDetailShown(false);
              setTimeout(() => document.getElementById("timeline")?.focus(), 0);
            }}
          />
        </section>
      </main>
      <div class="told-place" role="status">
        {told && (
          <div class={`told ${told.kind}`}>
            <span>{told.text}</span>
            {told.back && (
              <button
                type="button"
                disabled={busy !== null}
                onClick={() => told.back && void takeBack(told.back)}
              >
                {told.back === "undo" ? "Undo" : "Redo"}
              </button>
            )}
            <button type="button" class="icon" aria-label="Close this message" onClick={() => setTold(null)}>
              <span aria-hidden="true">×</span>
            </button>
          </div>
        )}
      </div>
      {open?.type === "plan" && (
        <PlanDialog asked={open.asked} onClose={() => setOpen(null)} onDone={applied} />
      )}
      {open?.type === "conversation" && (
        <ConversationDialog checkpoint={open.checkpoint} onClose={() => setOpen(null)} />
      )}
      {open?.type === "help" && <HelpDialog onClose={() => setOpen(null)} />}
      {open?.type === "file" && (
        <FileDialog
          path={open.path}
          known={known}
          onClose={() => setOpen(null)}
          onRestore={restore}
          onCheckpoint={(id) => {
            setOpen(null);
            setSelected(id);
          }}
        />
      )}
    </>
  );
}

function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

function footer(count: number, hasMore: boolean, isFiltered: boolean): string {
  if (count === 0)
    return isFiltered ? "No checkpoint fits." : "No checkpoints yet. Save one, or let an agent work.";
  return `${plural(count, "checkpoint")}${hasMore ? ", more below" : ""}`;
}

function ConnectionMark({ connection }: { connection: Connection }) {
  const words = { live: "Live", connecting: "Connecting", ended: "Not connected", unknown: "Not connected" };
  return (
    <span class={`connection ${connection}`} data-connection={connection}>
      {words[connection]}
    </span>
  );
}

/** Says that the server has ended, and how to start it. */
function Ended({ connection }: { connection: Connection }) {
  if (connection === "ended") {
    return (
      <p class="ended" role="alert">
        The server has ended. Start it again with <code>backtrail ui</code>, and open the address that it
        prints.
      </p>
    );
  }
  if (connection === "unknown") {
    return (
      <p class="ended" role="alert">
        The server was started again. Open the address that <code>backtrail ui</code> printed.
      </p>
    );
  }
  return null;
}
