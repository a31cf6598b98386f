// One file: its versions on a slider, and who wrote which line.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { read, text } from "./api.ts";
import { ChangeView } from "./change-view.tsx";
import { useHeight, useLoaded, useMedia, useNow } from "./hooks.ts";
import { Counts, Dialog, Note } from "./parts.tsx";
import { ago, bytes, firstLine, plural, visible } from "./text.ts";
import type { Blame, BlameRange, Checkpoint, History, Version } from "./types.ts";

const LINE = 20;

interface Properties {
  path: string;
  known: ReadonlyMap<string, Checkpoint>;
  onClose: () => void;
  onRestore: (checkpoint: string, path: string) => void;
  onCheckpoint: (id: string) => void;
}

export function FileDialog({ path, known, onClose, onRestore, onCheckpoint }: Properties) {
  const history = useLoaded((signal) => read<History>("history", { path }, signal), [path]);
  const [at, setAt] = useState(0);
  const [view, setView] = useState<"change" | "blame">("change");
  const isWide = useMedia("(min-width: 1100px)");
  const versions = history.state === "ready" ? history.value.versions : [];
  // The slider goes from old to new.
  const version = versions[versions.length - 1 - at];
  useEffect(() => setAt(Math.max(0, versions.length - 1)), [history]);
  return (
    <Dialog label={`Versions of ${visible(path)}`} class="file-dialog" onClose={onClose}>
      <header>
        <h2>{visible(path)}</h2>
        {history.state === "failed" && <Note kind="problem">{history.problem}</Note>}
        {version && (
          <>
            <label class="slider">
              <span>
                Version {at + 1} of {versions.length}
              </span>
              <input
                type="range"
                min={0}
                max={versions.length - 1}
                value={at}
                onInput={(event) => setAt(Number(event.currentTarget.value))}
                aria-valuetext={`version ${at + 1} of ${versions.length}`}
              />
            </label>
            <VersionLine
              version={version}
              checkpoint={known.get(version.checkpoint)}
              onCheckpoint={onCheckpoint}
            />
          </>
        )}
      </header>
      <div class="file-body">
        {version && view === "change" && (
          <ChangeView
            sides={{ from: null, to: version.checkpoint }}
            version={0}
            path={path}
            file={null}
            onTarget={() => {}}
            split={isWide}
            wrap={!isWide}
          />
        )}
        {version && view === "blame" && (
          <BlameView path={path} checkpoint={version.checkpoint} onCheckpoint={onCheckpoint} />
        )}
      </div>
      <footer>
        <span class="switch" role="group" aria-label="View">
          <button type="button" aria-pressed={view === "change"} onClick={() => setView("change")}>
            Change
          </button>
          <button type="button" aria-pressed={view === "blame"} onClick={() => setView("blame")}>
            Who wrote it
          </button>
        </span>
        {version && version.status !== "deleted" && (
          <button type="button" onClick={() => onRestore(version.checkpoint, path)}>
            Restore this version…
          </button>
        )}
        <button type="button" class="primary" onClick={onClose} autofocus>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

function VersionLine(properties: {
  version: Version;
  checkpoint: Checkpoint | undefined;
  onCheckpoint: (id: string) => void;
}) {
  const { version, checkpoint, onCheckpoint } = properties;
  const now = useNow();
  return (
    <p class="version" aria-live="polite">
      <button type="button" class="link" onClick={() => onCheckpoint(version.checkpoint)}>
        {version.checkpoint.slice(0, 8)}
      </button>
      {checkpoint && <span>{firstLine(checkpoint.prompt ?? checkpoint.message)}</span>}
      {checkpoint && <span class="quiet">{ago(checkpoint.timestamp, now)}</span>}
      <span class="quiet">
        {version.status}
        {version.bytes !== null && `, ${bytes(version.bytes)}`}
      </span>
      <Counts insertions={version.insertions} deletions={version.deletions} />
    </p>
  );
}

interface Line {
  text: string;
  range: BlameRange | undefined;
  isFirst: boolean;
}

function BlameView({
  path,
  checkpoint,
  onCheckpoint,
}: {
  path: string;
  checkpoint: string;
  onCheckpoint: (id: string) => void;
}) {
  const loaded = useLoaded(
    async (signal) => {
      const blame = await read<Blame>("blame", { path, checkpoint }, signal);
      const content = blame.hidden ? "" : await text("file", { path, checkpoint }, signal);
      return { blame, lines: content.replace(/\n$/, "").split("\n") };
    },
    [path, checkpoint],
  );
  const lines = useMemo(
    () => (loaded.state === "ready" ? blamed(loaded.value.blame, loaded.value.lines) : []),
    [loaded],
  );
  const scroller = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const height = useHeight(scroller);
  if (loaded.state === "loading") return <p role="status">Looking for the origin of each line…</p>;
  if (loaded.state === "failed") return <Note kind="problem">{loaded.problem}</Note>;
  if (loaded.value.blame.hidden) return <Note>This file may hold secrets, so its lines are not listed.</Note>;
  const first = Math.max(0, Math.floor(scrollTop / LINE) - 20);
  const last = Math.min(lines.length, Math.ceil((scrollTop + height) / LINE) + 20);
  return (
    <div
      ref={scroller}
      class="blame"
      tabIndex={0}
      role="region"
      aria-label={`${plural(lines.length, "line")} with their origin`}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
    >
      <div class="blame-lines" style={{ height: `${lines.length * LINE}px` }}>
        {lines.slice(first, last).map((line, offset) => (
          <BlameLine
            key={first + offset}
            line={line}
            number={first + offset + 1}
            onCheckpoint={onCheckpoint}
          />
        ))}
      </div>
    </div>
  );
}

function BlameLine({
  line,
  number,
  onCheckpoint,
}: {
  line: Line;
  number: number;
  onCheckpoint: (id: string) => void;
}) {
  const { range } = line;
  const id = range?.checkpoint ?? null;
  const name = range?.turn ? `prompt ${range.turn}` : (range?.tool ?? "saved");
  return (
    <div class={`blame-line ${line.isFirst ? "first" : ""}`} style={{ top: `${(number - 1) * LINE}px` }}>
      <span class="origin">
        {line.isFirst && id && (
          <button
            type="button"
            class="link"
            title={firstLine(range?.prompt ?? "")}
            onClick={() => onCheckpoint(id)}
          >
            {id.slice(0, 8)} {firstLine(name)}
          </button>
        )}
        {line.isFirst && !id && "not saved yet"}
      </span>
      <span class="line-number">{number}</span>
      <code>{visible(line.text)}</code>
    </div>
  );
}

function blamed(blame: Blame, lines: string[]): Line[] {
  const found: Line[] = lines.map((text) => ({ text, range: undefined, isFirst: false }));
  for (const range of blame.ranges) {
    for (let number = range.start; number < range.start + range.lines; number += 1) {
      const line = found[number - 1];
      if (line) Object.assign(line, { range, isFirst: number === range.start });
    }
  }
  return found;
}
