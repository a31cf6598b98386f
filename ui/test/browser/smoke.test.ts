// The shortest way through the page: a prompt, its change, a restore, and undo.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { closeBrowser, open, Place } from "./place.ts";

const place = new Place();
after(async () => {
  await closeBrowser();
  place.remove();
});

test("a prompt is shown while the page is open, and is taken back by a click", async () => {
  place.write("a.txt", "one\n");
  place.run(["save", "-m", "<b>first</b>"]);
  const server = await place.serve();
  const { page, foreign, errors } = await open(server);
  await page.locator("[data-connection=live]").waitFor();
  await page.locator("[role=option]", { hasText: "<b>first</b>" }).waitFor();

  place.hook("SessionStart", { source: "startup" });
  place.prompt("make it two", { "a.txt": "two\n" });
  const prompt = page.locator("[role=option].kind-turn", { hasText: "make it two" });
  await prompt.click();
  await page.locator("#detail h2", { hasText: "make it two" }).waitFor();
  await page.locator("[data-line]", { hasText: "two" }).first().waitFor();

  await page.getByRole("button", { name: "Restore…" }).click();
  await page.getByRole("button", { name: "Restore 1 file" }).click();
  await page.getByText("Restored 1 file.").waitFor();
  const file = path.join(place.workspace, "a.txt");
  assert.equal(readFileSync(file, "utf8"), "one\n");
  await page.locator(".told").getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone: 1 file as before.").waitFor();
  assert.equal(readFileSync(file, "utf8"), "two\n");
  assert.deepEqual([foreign, errors], [[], []]);
});
