import assert from "node:assert/strict";
import { test } from "node:test";
import { group, heightOf, marks, promptKey, type Row } from "../../src/rows.ts";
import type { Checkpoint, Kind } from "../../src/types.ts";

let number = 0;

function checkpoint(kind: Kind, more: Partial<Checkpoint> = {}): Checkpoint {
  number += 1;
  const id = String(number).padStart(40, "0");
  return {
    id,
    short_id: id.slice(-8),
    name: null,
    message: `message ${number}`,
    description: null,
    kind,
    timestamp: "2026-11-18T12:00:00.000Z",
    parent: null,
    files_changed: [],
    insertions: 0,
    deletions: 0,
    step: null,
    session: null,
    agent: null,
    turn: null,
    prompt: null,
    tool: null,
    attachments: [],
    metadata: {},
    pinned: false,
    complete: true,
    dropped: 0,
    scope: null,
    reverted: false,
    truncated: [],
    ...more,
  };
}

const of = { session: "s", agent: "claude", turn: 1 };
const steps = [
  checkpoint("step", { ...of, files_changed: ["a", "b"], insertions: 2 }),
  checkpoint("step", { ...of, files_changed: ["a"], insertions: 1, deletions: 4 }),
];
const turn = checkpoint("turn", { ...of, prompt: "do it" });
const manual = checkpoint("manual");
const all = [...steps, turn, manual];

const shown = (rows: Row[]) =>
  rows.map((row) => (row.type === "checkpoint" ? row.checkpoint.kind : row.type));

test("sessions have a heading, and prompts the sum of their steps", () => {
  const { rows } = group(all, new Set(), true);
  assert.deepEqual(shown(rows), ["disk", "session", "step", "step", "turn", "manual"]);
  const row = rows[4];
  assert.ok(row?.type === "checkpoint" && row.prompt);
  assert.deepEqual(
    [row.prompt.files, row.prompt.insertions, row.prompt.deletions, row.prompt.steps.length],
    [2, 3, 4, 2],
  );
});

test("the steps of a folded prompt have no rows, but still count", () => {
  const key = promptKey(turn);
  assert.ok(key);
  const { rows } = group(all, new Set([key]), true);
  assert.deepEqual(shown(rows), ["disk", "session", "turn", "manual"]);
  const row = rows[2];
  assert.ok(row?.type === "checkpoint" && row.prompt?.files === 2);
});

test("every row has a height", () => {
  for (const row of group(all, new Set(), true).rows) assert.ok(heightOf(row) > 20);
});

test("ten thousand checkpoints are grouped in linear time", () => {
  const many = Array.from({ length: 10_000 }, () => checkpoint("step", of));
  assert.equal(group([...many, turn], new Set(), true).rows.length, 10_003);
});

test("marks name what is special", () => {
  const special = checkpoint("step", {
    pinned: true,
    reverted: true,
    complete: false,
    dropped: 2,
    tool: "Bash",
    metadata: { late: true },
  });
  assert.deepEqual(marks(special), ["pinned", "reverted", "late", "incomplete", "2 dropped", "shell"]);
  assert.deepEqual(marks(manual), []);
});
