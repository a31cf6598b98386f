import assert from "node:assert/strict";
import { test } from "node:test";
import { Positions } from "../../src/virtual.ts";

test("visible rows are found", () => {
  const positions = new Positions([10, 20, 30, 40]);
  assert.equal(positions.total, 100);
  assert.deepEqual(
    [positions.at(0), positions.at(9), positions.at(10), positions.at(59), positions.at(1e9)],
    [0, 0, 1, 2, 3],
  );
  assert.deepEqual(positions.visible(15, 20, 0), [1, 3]);
  assert.deepEqual(positions.visible(0, 1_000, 50), [0, 4]);
  assert.deepEqual(new Positions([]).visible(0, 100, 10), [0, 0]);
});

test("few of many rows are visible", () => {
  const positions = new Positions(Array.from({ length: 100_000 }, (_, index) => 20 + (index % 3)));
  const [first, last] = positions.visible(1_000_000, 800, 400);
  assert.ok(last - first < 100 && first > 40_000);
});
