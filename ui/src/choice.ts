// The files and hunks of a plan that are chosen.

import type { Change, Plan } from "./types.ts";

/** For each path: all of it, or some hunks. A path that is missing is not chosen. */
export type Choice = ReadonlyMap<string, "all" | ReadonlySet<string>>;

export function everything(plan: Plan): Choice {
  return new Map(plan.changes.map((change) => [change.path, "all"]));
}

export function isEverything(plan: Plan, choice: Choice): boolean {
  return plan.changes.every((change) => choice.get(change.path) === "all");
}

export function toggleFile(choice: Choice, change: Change): Choice {
  const next = new Map(choice);
  if (next.get(change.path) === "all") next.delete(change.path);
  else next.set(change.path, "all");
  return next;
}

export function toggleHunk(choice: Choice, change: Change, hunk: string): Choice {
  const all = (change.hunks ?? []).map((found) => found.id);
  const before = choice.get(change.path);
  const chosen = new Set(before === "all" ? all : (before ?? []));
  if (!chosen.delete(hunk)) chosen.add(hunk);
  const next = new Map(choice);
  if (chosen.size === 0) next.delete(change.path);
  else next.set(change.path, chosen.size === all.length ? "all" : chosen);
  return next;
}

export function hasHunk(choice: Choice, path: string, hunk: string): boolean {
  const chosen = choice.get(path);
  return chosen === "all" || (chosen?.has(hunk) ?? false);
}

/** Returns the part of a request for a plan that says what is chosen. */
export function request(choice: Choice): { hunks: string[]; files: string[] } {
  const hunks: string[] = [];
  const files: string[] = [];
  for (const [path, chosen] of choice) {
    if (chosen === "all") files.push(path);
    else hunks.push(...chosen);
  }
  return { hunks, files };
}
