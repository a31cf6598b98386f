import assert from "node:assert/strict";
import { test } from "node:test";
import { tree } from "../../src/tree.ts";
import type { Change } from "../../src/types.ts";

const change = (path: string): Change => ({
  path,
  status: "modified",
  insertions: 1,
  deletions: 0,
  binary: false,
  hidden: false,
});

const drawn = (paths: string[]) =>
  tree(paths.map(change)).map(
    (entry) => `${"  ".repeat(entry.depth)}${entry.name}${entry.type === "directory" ? "/" : ""}`,
  );

test("files are below their directories", () => {
  assert.deepEqual(drawn(["b.txt", "src/x.rs", "src/a/y.rs", "a.txt"]), [
    "a.txt",
    "b.txt",
    "src/",
    "  a/",
    "    y.rs",
    "  x.rs",
  ]);
});

test("directories with one way through them share a row", () => {
  assert.deepEqual(drawn(["a/b/c/d.txt", "a/b/c/e.txt"]), ["a/b/c/", "  d.txt", "  e.txt"]);
});

test("an empty directory is a file of the tree", () => {
  assert.deepEqual(drawn(["dir/"]), ["dir/"]);
});
