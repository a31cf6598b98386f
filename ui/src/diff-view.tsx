// Shows differences. The component that draws them, and its worker, are loaded when the first one is shown.

import type { CodeView, CodeViewItem, CodeViewOptions, FileContents, FileDiffMetadata } from "@pierre/diffs";
import type { WorkerPoolManager } from "@pierre/diffs/worker";
import { useEffect, useRef } from "preact/hooks";
import { useLatest } from "./hooks.ts";
import { visible } from "./text.ts";

declare const WORKER: string;

type Diffs = typeof import("@pierre/diffs");
export type Item = CodeViewItem<undefined>;

const THEME = { light: "pierre-light", dark: "pierre-dark" };

let loading: Promise<{ diffs: Diffs; pool: WorkerPoolManager }> | null = null;

/** Loads the component once. */
export function loadDiffs(): Promise<{ diffs: Diffs; pool: WorkerPoolManager }> {
  loading ??= Promise.all([import("@pierre/diffs"), import("@pierre/diffs/worker")]).then(
    ([diffs, worker]) => {
      const pool = worker.getOrCreateWorkerPoolSingleton({
        poolOptions: { workerFactory: () => new Worker(WORKER, { type: "module" }), poolSize: 1 },
        highlighterOptions: { theme: THEME, preferredHighlighter: "shiki-js" },
      });
      return { diffs, pool };
    },
  );
  return loading;
}

/** Parses a patch into one item for each file. */
export async function itemsOf(patch: string, key: string): Promise<Item[]> {
  const { diffs } = await loadDiffs();
  const files = diffs.parsePatchFiles(patch, { cacheKeyPrefix: key }).flatMap((parsed) => parsed.files);
  const used = new Set<string>();
  const items: Item[] = [];
  for (const fileDiff of files) {
    // A change of type has two parts in a patch.
    const id = used.has(fileDiff.name) ? `${fileDiff.name} (new)` : fileDiff.name;
    used.add(id);
    if (fileDiff.hunks.length > 0) items.push({ id, type: "diff", fileDiff });
  }
  return items;
}

/** Compares two texts. */
export async function itemOf(
  path: string,
  before: FileContents | null,
  after: FileContents | null,
): Promise<Item> {
  const { diffs } = await loadDiffs();
  return { id: path, type: "diff", fileDiff: diffs.parseDiffFromFile(before, after) };
}

export interface DiffProperties {
  items: readonly Item[];
  split: boolean;
  wrap: boolean;
  /** The file to scroll to. The number makes a second request for the same file a new one. */
  target: { path: string; count: number } | null;
  /** Shown above the differences, and scrolled with them. */
  header?: HTMLElement | undefined;
  load?: ((path: string) => Promise<{ oldFile: FileContents; newFile: FileContents }>) | undefined;
}

export function DiffView({ items, split, wrap, target, header, load }: DiffProperties) {
  const root = useRef<HTMLDivElement>(null);
  const view = useRef<CodeView<undefined> | null>(null);
  const newest = useLatest({ items, split, wrap, target, header, load });

  useEffect(() => {
    let gone = false;
    void loadDiffs().then(({ diffs, pool }) => {
      if (gone || !root.current) return;
      const made = new diffs.CodeView<undefined>(optionsOf(newest.current), pool);
      view.current = made;
      made.setup(root.current);
      made.setItems(newest.current.items);
      made.render(true);
      scrollTo(made, newest.current.target);
    });
    return () => {
      gone = true;
      view.current?.cleanUp();
      view.current = null;
    };
  }, []);
  useEffect(() => {
    view.current?.setItems(items);
    view.current?.scrollTo({ type: "position", position: 0, behavior: "instant" });
  }, [items]);
  useEffect(() => {
    view.current?.setOptions(optionsOf(newest.current));
    view.current?.render();
  }, [split, wrap, header]);
  useEffect(() => scrollTo(view.current, target), [target]);

  return (
    <div
      ref={root}
      class="code"
      tabIndex={0}
      role="region"
      aria-label="Changed lines"
      data-files={items.length}
    />
  );
}

function scrollTo(view: CodeView<undefined> | null, target: DiffProperties["target"]): void {
  if (view && target && view.getItem(target.path)) {
    view.scrollTo({ type: "item", id: target.path, align: "start", behavior: "instant" });
  }
}

function optionsOf({ split, wrap, header, load }: DiffProperties): CodeViewOptions<undefined, undefined> {
  const options: CodeViewOptions<undefined, undefined> = {
    theme: THEME,
    themeType: "system",
    diffStyle: split ? "split" : "unified",
    overflow: wrap ? "wrap" : "scroll",
    lineDiffType: "word",
    diffIndicators: "classic",
    stickyHeaders: true,
    hunkSeparators: "line-info",
    tokenizeMaxLineLength: 2_000,
    maxLineDiffLength: 2_000,
  };
  if (header) options.renderCodeViewHeader = () => header;
  if (load) options.loadDiffFiles = (diff: FileDiffMetadata) => load(diff.name);
  return options;
}

export function contents(path: string, text: string): FileContents {
  return { name: visible(path), contents: text };
}
