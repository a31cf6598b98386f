import assert from "node:assert/strict";
import { test } from "node:test";
import { everything, hasHunk, isEverything, request, toggleFile, toggleHunk } from "../../src/choice.ts";
import type { Change, Hunk, Plan } from "../../src/types.ts";

const hunk = (id: string): Hunk => ({
  id,
  old_start: 1,
  old_lines: 1,
  new_start: 1,
  new_lines: 1,
  section: "",
  lines: [],
});
const a: Change = {
  path: "a",
  status: "modified",
  insertions: 1,
  deletions: 1,
  binary: false,
  hidden: false,
  hunks: [hunk("a1"), hunk("a2")],
};
const b: Change = { ...a, path: "b", hunks: [hunk("b1")] };
const plan: Plan = {
  plan: "p",
  changes: [a, b],
  applied: false,
  safety: null,
  conflicts: [],
  stays: [],
  not_restored: [],
  changes_total: 2,
  truncated: [],
};

test("some hunks of a file are chosen", () => {
  const all = everything(plan);
  assert.ok(isEverything(plan, all));
  const some = toggleFile(toggleHunk(all, a, "a1"), b);
  assert.deepEqual(request(some), { hunks: ["a2"], files: [] });
  assert.ok(hasHunk(some, "a", "a2") && !hasHunk(some, "a", "a1") && !hasHunk(some, "b", "b1"));
  const whole = toggleHunk(some, a, "a1");
  assert.deepEqual(request(whole), { hunks: [], files: ["a"] });
  assert.deepEqual(request(toggleHunk(toggleHunk(whole, a, "a1"), a, "a2")), { hunks: [], files: [] });
});
