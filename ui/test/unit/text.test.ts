import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, firstLine, plural, visible } from "../../src/text.ts";

test("times are told as people say them", () => {
  const now = Date.parse("2026-11-18T12:00:00Z");
  const told = (seconds: number) => ago(new Date(now - seconds * 1000).toISOString(), now);
  assert.equal(told(3), "just now");
  assert.equal(told(120), "2 min ago");
  assert.equal(told(3 * 3600), "3 h ago");
  assert.equal(told(86_400), "1 day ago");
  assert.equal(told(100 * 86_400), "2026-08-10");
  assert.equal(told(-5), "just now");
});

test("nothing in a text is invisible or reorders it", () => {
  assert.equal(visible("a\u202eb"), "a\\u{202e}b");
  assert.equal(visible("\u001b[31mred"), "\\u{1b}[31mred");
  assert.equal(visible("tab\tand\nline <b>"), "tab\tand\nline <b>");
  assert.equal(firstLine("\n  \n first \nsecond"), "first");
  assert.equal(firstLine(""), "");
});

test("numbers have their nouns", () => {
  assert.equal(plural(1, "file"), "1 file");
  assert.equal(plural(12_000, "file"), "12,000 files");
  assert.equal(bytes(999), "999 bytes");
  assert.equal(bytes(1_500), "1.5 kB");
  assert.equal(bytes(12_345_678), "12 MB");
});
