import assert from "node:assert/strict";
import { test } from "node:test";
import { Lanes, MAX_LANES } from "../../src/lanes.ts";

/** Returns the lanes of checkpoints given as `child parent`, newest first. */
function lanes(pairs: string[]) {
  const open = new Lanes();
  return pairs.map((pair) => {
    const [id = "", parent = ""] = pair.split(" ");
    return open.step(id, parent === "." ? null : parent);
  });
}

test("a plain line has one lane", () => {
  const found = lanes(["c b", "b a", "a ."]);
  assert.deepEqual(
    found.map((lane) => lane.own),
    [0, 0, 0],
  );
  assert.deepEqual(found.at(0)?.above, []);
  assert.deepEqual(found.at(2)?.below, []);
});

test("lines join where they forked", () => {
  const found = lanes(["d a", "c b", "b a", "a ."]);
  assert.deepEqual(
    found.map((lane) => lane.own),
    [0, 1, 1, 0],
  );
  assert.deepEqual(found.at(3)?.joining, [1]);
  assert.deepEqual(found.at(3)?.below, []);
});

test("the number of lanes is limited", () => {
  const many = Array.from({ length: 40 }, (_, number) => `${number} root`);
  const found = lanes([...many, "root ."]);
  assert.ok(found.every((lane) => lane.own < MAX_LANES && lane.above.length <= MAX_LANES));
});
