// Groups checkpoints into the rows of the timeline: sessions, prompts, steps, and everything else.

import { type Lane, Lanes } from "./lanes.ts";
import type { Checkpoint } from "./types.ts";

export type Row =
  | { type: "disk"; key: string }
  | { type: "session"; key: string; session: string; agent: string | null; newest: Checkpoint }
  | {
      type: "checkpoint";
      key: string;
      checkpoint: Checkpoint;
      lane: Lane;
      prompt: Prompt | null;
      indented: boolean;
    };

/** The work for a prompt, as far as it is loaded. */
export interface Prompt {
  steps: Checkpoint[];
  files: number;
  insertions: number;
  deletions: number;
}

export const HEIGHTS = { disk: 52, session: 34, turn: 58, other: 44, step: 32 };

export function heightOf(row: Row): number {
  if (row.type !== "checkpoint") return HEIGHTS[row.type];
  if (row.checkpoint.kind === "turn") return HEIGHTS.turn;
  return row.indented ? HEIGHTS.step : HEIGHTS.other;
}

/** Names the prompt that a step belongs to. */
export function promptKey(checkpoint: Checkpoint): string | null {
  return checkpoint.turn === null ? null : `${checkpoint.session ?? ""}\n${checkpoint.turn}`;
}

export interface Grouped {
  rows: Row[];
  prompts: Map<string, Prompt>;
}

/** Arranges checkpoints, which come newest first. The steps of folded prompts have no rows. */
export function group(
  checkpoints: readonly Checkpoint[],
  folded: ReadonlySet<string>,
  lanesAreKnown: boolean,
): Grouped {
  const prompts = collect(checkpoints);
  const lanes = new Lanes();
  const rows: Row[] = [{ type: "disk", key: "disk" }];
  let session: string | null = null;
  for (const checkpoint of checkpoints) {
    const parent = checkpoint.nearest_parent ?? checkpoint.parent;
    const lane = lanesAreKnown
      ? lanes.step(checkpoint.id, parent)
      : { own: 0, above: [0], below: [0], joining: [] };
    if (checkpoint.session !== null && checkpoint.session !== session && checkpoint.kind !== "safety") {
      session = checkpoint.session;
      rows.push({
        type: "session",
        key: `session ${checkpoint.id}`,
        session,
        agent: checkpoint.agent,
        newest: checkpoint,
      });
    }
    const key = promptKey(checkpoint);
    const indented = checkpoint.kind === "step";
    if (indented && key !== null && folded.has(key)) continue;
    const prompt = checkpoint.kind === "turn" && key !== null ? (prompts.get(key) ?? null) : null;
    rows.push({ type: "checkpoint", key: checkpoint.id, checkpoint, lane, prompt, indented });
  }
  return { rows, prompts };
}

function collect(checkpoints: readonly Checkpoint[]): Map<string, Prompt> {
  const prompts = new Map<string, Prompt>();
  const files = new Map<string, Set<string>>();
  for (const checkpoint of checkpoints) {
    const key = promptKey(checkpoint);
    if (key === null || checkpoint.kind !== "step") continue;
    let prompt = prompts.get(key);
    let changed = files.get(key);
    if (!prompt || !changed) {
      prompt = { steps: [], files: 0, insertions: 0, deletions: 0 };
      changed = new Set();
      prompts.set(key, prompt);
      files.set(key, changed);
    }
    prompt.steps.push(checkpoint);
    prompt.insertions += checkpoint.insertions;
    prompt.deletions += checkpoint.deletions;
    for (const path of checkpoint.files_changed) changed.add(path);
    prompt.files = changed.size;
  }
  return prompts;
}

/** Returns the marks of a checkpoint, as words. */
export function marks(checkpoint: Checkpoint): string[] {
  const found: string[] = [];
  if (checkpoint.pinned) found.push("pinned");
  if (checkpoint.reverted) found.push("reverted");
  if (checkpoint.metadata["late"] === true) found.push("late");
  if (!checkpoint.complete) found.push("incomplete");
  if (checkpoint.dropped > 0) found.push(`${checkpoint.dropped} dropped`);
  if (
    checkpoint.tool !== null &&
    /^(bash|shell|run_shell_command|execute_command|local_shell)$/i.test(checkpoint.tool)
  ) {
    found.push("shell");
  }
  return found;
}
