// The change of a prompt, a step or the files on disk: a tree of files and their differences.

import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, read, sentence, text } from "./api.ts";
import { contents, DiffView, type Item, itemOf, itemsOf } from "./diff-view.tsx";
import { useLoaded, useMedia } from "./hooks.ts";
import { Counts, Note, StatusLetter } from "./parts.tsx";
import { bytes, plural, visible } from "./text.ts";
import { tree } from "./tree.ts";
import type { Change, Diff } from "./types.ts";

const IMAGE = /\.(png|jpe?g|gif|webp|avif|ico|svg)$/i;
/** The most files that get a card of their own above the differences. */
const MAX_CARDS = 60;
const MAX_TREE = 1_000;

export interface Sides {
  /** Empty: the checkpoint before `to`. */
  from: string | null;
  /** Empty: the files on disk. */
  to: string | null;
}

interface Properties {
  sides: Sides;
  /** Changes when the differences have to be read again. */
  version: number;
  path?: string | null;
  onFile?: (path: string) => void;
  file: { path: string; count: number } | null;
  onTarget: (path: string) => void;
  onChanges?: (changes: Change[]) => void;
  split: boolean;
  wrap: boolean;
}

export function ChangeView(properties: Properties) {
  const { sides, version, path = null, split, wrap, file } = properties;
  const key = `${sides.from} ${sides.to} ${path}`;
  const loaded = useLoaded(
    (signal) => read<Diff>("diff", { from: sides.from, to: sides.to, path, hunks: 0 }, signal),
    [key, version],
  );
  const [revealed, setRevealed] = useState<Item[]>([]);
  useEffect(() => setRevealed([]), [key]);
  const diff = loaded.state === "ready" ? loaded.value : null;
  const parsed = useLoaded(
    async () => (diff === null ? [] : itemsOf(diff.patch, `${diff.from} ${diff.to} ${version}`)),
    [diff],
  );
  const items = useMemo(
    () => (parsed.state === "ready" ? [...revealed, ...parsed.value] : []),
    [parsed, revealed],
  );
  useEffect(() => {
    if (diff) properties.onChanges?.(diff.changes);
  }, [diff]);
  const header = useMemo(() => document.createElement("div"), []);
  useEffect(() => {
    const onReveal = (item: Item) =>
      setRevealed((before) => [item, ...before.filter((known) => known.id !== item.id)]);
    const shown = new Set(items.map((item) => item.id));
    if (diff) render(<Cards diff={diff} shown={shown} onReveal={onReveal} />, header);
    else render(null, header);
  }, [diff, items]);

  if (loaded.state === "loading")
    return (
      <div class="waiting" role="status">
        Comparing…
      </div>
    );
  if (loaded.state === "failed") return <Note kind="problem">{loaded.problem}</Note>;
  if (loaded.value.changes.length === 0) return <Empty diff={loaded.value} />;
  const load = async (name: string) => {
    const [before, after] = await Promise.all([
      text("file", { checkpoint: loaded.value.from, path: name }),
      text("file", { checkpoint: loaded.value.to, path: name }),
    ]);
    return { oldFile: contents(name, before), newFile: contents(name, after) };
  };
  return (
    <div class="change">
      <Files
        diff={loaded.value}
        selected={file?.path ?? null}
        onSelect={properties.onTarget}
        {...(properties.onFile ? { onFile: properties.onFile } : {})}
      />
      <div class="differences">
        {loaded.value.truncated.map((note) => (
          <Note key={note}>{note}</Note>
        ))}
        {loaded.value.skipped.length > 0 && (
          <Note>
            {plural(loaded.value.skipped.length, "path")} could not be compared, because checkpoints skip them
            now.
          </Note>
        )}
        <DiffView items={items} split={split} wrap={wrap} target={file} header={header} load={load} />
      </div>
    </div>
  );
}

function Empty({ diff }: { diff: Diff }) {
  return (
    <div class="waiting">
      <p>{diff.to === null ? "The files on disk are the same." : "Nothing changed here."}</p>
    </div>
  );
}

function Files(properties: {
  diff: Diff;
  selected: string | null;
  onSelect: (path: string) => void;
  onFile?: (path: string) => void;
}) {
  const { diff, selected, onSelect, onFile } = properties;
  const isNarrow = useMedia("(max-width: 900px)");
  const [isOpen, setIsOpen] = useState(!isNarrow);
  useEffect(() => setIsOpen(!isNarrow), [isNarrow]);
  const entries = useMemo(() => tree(diff.changes.slice(0, MAX_TREE)), [diff]);
  const insertions = diff.changes.reduce((sum, change) => sum + change.insertions, 0);
  const deletions = diff.changes.reduce((sum, change) => sum + change.deletions, 0);
  return (
    <nav class="files" aria-label="Changed files">
      <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>
          {plural(diff.changes_total, "file")} <Counts insertions={insertions} deletions={deletions} />
        </summary>
        <ul>
          {entries.map((entry) =>
            entry.type === "directory" ? (
              <li
                key={`d ${entry.path}`}
                class="directory"
                style={{ paddingInlineStart: `${entry.depth * 14 + 8}px` }}
              >
                {visible(entry.name)}/
              </li>
            ) : (
              <li key={entry.change.path} class={entry.change.path === selected ? "selected" : ""}>
                <button
                  type="button"
                  class="file"
                  style={{ paddingInlineStart: `${entry.depth * 14 + 8}px` }}
                  aria-current={entry.change.path === selected ? "true" : undefined}
                  onClick={() => onSelect(entry.change.path)}
                  title={visible(entry.change.path)}
                >
                  <StatusLetter change={entry.change} />
                  <span class="name">{visible(entry.name)}</span>
                  <Counts insertions={entry.change.insertions} deletions={entry.change.deletions} />
                </button>
                {onFile && !entry.change.path.endsWith("/") && (
                  <button
                    type="button"
                    class="icon"
                    aria-label={`History of ${visible(entry.change.path)}`}
                    title="Versions and origin of each line"
                    onClick={() => onFile(entry.change.path)}
                  >
                    <span aria-hidden="true">↺</span>
                  </button>
                )}
              </li>
            ),
          )}
        </ul>
        {diff.changes_total > entries.length && entries.length >= MAX_TREE && <Note>and more</Note>}
      </details>
    </nav>
  );
}

/** Files that can't be shown as lines: images, other binary files, precious and empty ones. */
function Cards({
  diff,
  shown,
  onReveal,
}: {
  diff: Diff;
  shown: ReadonlySet<string>;
  onReveal: (item: Item) => void;
}) {
  const special = diff.changes.filter((change) => !shown.has(change.path) && !change.path.endsWith("/"));
  return (
    <div class="cards">
      {special.slice(0, MAX_CARDS).map((change) => (
        <section key={change.path} class="card" aria-label={visible(change.path)}>
          <h3>
            <StatusLetter change={change} /> {visible(change.path)}
          </h3>
          <Card change={change} diff={diff} onReveal={onReveal} />
        </section>
      ))}
      {special.length > MAX_CARDS && <Note>and {plural(special.length - MAX_CARDS, "more file")}</Note>}
    </div>
  );
}

function Card({ change, diff, onReveal }: { change: Change; diff: Diff; onReveal: (item: Item) => void }) {
  if (change.hidden) return <Precious change={change} diff={diff} onReveal={onReveal} />;
  if (IMAGE.test(change.path)) return <Images change={change} diff={diff} />;
  if (change.binary) return <Sizes change={change} diff={diff} />;
  if (change.status === "mode_changed") return <p>Only its permissions changed.</p>;
  return (
    <p>
      {change.insertions + change.deletions > 0
        ? "Not shown here. Choose this file alone."
        : "No lines changed."}
    </p>
  );
}

function Precious({
  change,
  diff,
  onReveal,
}: {
  change: Change;
  diff: Diff;
  onReveal: (item: Item) => void;
}) {
  const [problem, setProblem] = useState<string | null>(null);
  const show = async () => {
    const side = (checkpoint: string | null, isThere: boolean) =>
      isThere ? text("file", { checkpoint, path: change.path, reveal: 1 }) : Promise.resolve(null);
    try {
      const [before, after] = await Promise.all([
        side(diff.from, change.status !== "added"),
        side(diff.to, change.status !== "deleted"),
      ]);
      const of = (found: string | null) => contents(change.path, found ?? "");
      onReveal(await itemOf(change.path, of(before), of(after)));
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  return (
    <>
      <p>The contents of this file are hidden, because it may hold secrets.</p>
      <button type="button" onClick={show}>
        Show the contents of {visible(change.path)}
      </button>
      {problem && <Note kind="problem">{problem}</Note>}
    </>
  );
}

function sideAddress(checkpoint: string | null, path: string): string {
  return address("file", { checkpoint, path });
}

function Images({ change, diff }: { change: Change; diff: Diff }) {
  const sides: [string, string | null, boolean][] = [
    ["before", diff.from, change.status !== "added"],
    ["after", diff.to, change.status !== "deleted"],
  ];
  return (
    <div class="images">
      {sides.map(([name, checkpoint, isThere]) => (
        <figure key={name}>
          <figcaption>{name}</figcaption>
          {isThere ? (
            <img
              src={sideAddress(checkpoint, change.path)}
              alt={`${visible(change.path)}, ${name}`}
              loading="lazy"
            />
          ) : (
            <span class="absent">no file</span>
          )}
        </figure>
      ))}
    </div>
  );
}

function Sizes({ change, diff }: { change: Change; diff: Diff }) {
  const sizes = /\((?:(\d+) bytes before, (\d+) bytes after|(\d+) bytes)\)/;
  const line = diff.patch
    .split("\n")
    .find((line) => line.startsWith("Binary files") && line.includes(change.path));
  const found = line?.match(sizes);
  const told = found?.[1]
    ? `${bytes(Number(found[1]))} before, ${bytes(Number(found[2]))} after`
    : found?.[3]
      ? bytes(Number(found[3]))
      : "the contents are not text";
  return <p>Binary file: {told}.</p>;
}
