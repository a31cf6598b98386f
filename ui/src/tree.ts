// Arranges changed files as a tree of directories.

import type { Change } from "./types.ts";

export type Entry =
  | { type: "directory"; name: string; path: string; depth: number }
  | { type: "file"; name: string; depth: number; change: Change };

/** Returns the rows of the tree. Directories with a single directory in them share a row. */
export function tree(changes: readonly Change[]): Entry[] {
  const entries: Entry[] = [];
  const sorted = [...changes].sort((a, b) => compare(a.path, b.path));
  let above: { path: string; depth: number }[] = [];
  for (const [index, change] of sorted.entries()) {
    const parts = change.path.replace(/\/$/, "").split("/");
    const name = parts.pop() ?? change.path;
    above = above.filter((directory) => isWithin(change.path, directory.path));
    let path = above.at(-1)?.path ?? "";
    let shown = "";
    for (const part of parts.slice(path === "" ? 0 : path.split("/").length)) {
      path = path === "" ? part : `${path}/${part}`;
      shown = shown === "" ? part : `${shown}/${part}`;
      if (forks(sorted, index, path)) {
        entries.push({ type: "directory", name: shown, path, depth: above.length });
        above.push({ path, depth: above.length });
        shown = "";
      }
    }
    if (shown !== "") {
      entries.push({ type: "directory", name: shown, path, depth: above.length });
      above.push({ path, depth: above.length });
    }
    entries.push({
      type: "file",
      name: change.path.endsWith("/") ? `${name}/` : name,
      depth: above.length,
      change,
    });
  }
  return entries;
}

function isWithin(path: string, directory: string): boolean {
  return path.startsWith(`${directory}/`);
}

/** Returns whether files below this directory go different ways, as far as the next one shows. */
function forks(sorted: readonly Change[], index: number, path: string): boolean {
  const own = sorted[index]?.path.slice(path.length + 1).split("/")[0];
  const next = sorted[index + 1]?.path;
  return next !== undefined && isWithin(next, path) && next.slice(path.length + 1).split("/")[0] !== own;
}

/** Orders paths part by part, so that a directory stays together. */
function compare(a: string, b: string): number {
  const [left, right] = [a.split("/"), b.split("/")];
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const [one, other] = [left[index] ?? "", right[index] ?? ""];
    if (one !== other) return one < other ? -1 : 1;
  }
  return left.length - right.length;
}
