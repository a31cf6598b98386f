// The functions of the page, in a browser, with the real program and real hooks of an agent.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { closeBrowser, open, PATIENCE, Place, type Tab } from "./place.ts";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAfbLI3wAAAABJRU5ErkJggg==",
  "base64",
);

const places: Place[] = [];
after(async () => {
  await closeBrowser();
  for (const place of places) place.remove();
});

function newPlace(): Place {
  const place = new Place();
  places.push(place);
  return place;
}

const lines = (first: string, last: string) =>
  `${first}\n${Array.from({ length: 40 }, (_, number) => `line ${number}`).join("\n")}\n${last}\n`;

/** A workspace with two prompts of an agent. */
function worked(): Place {
  const place = newPlace();
  place.write("a.txt", lines("first", "last"));
  place.write("picture.png", PIXEL);
  place.write(".env", "KEY=old-secret\n");
  place.run(["save", "-m", "before"]);
  place.hook("SessionStart", { source: "startup" });
  place.prompt("change both ends", { "a.txt": lines("FIRST", "LAST") });
  place.prompt("add files", {
    "b.ts": "export const b = 1;\n",
    "picture.png": Buffer.concat([PIXEL, Buffer.from([0])]),
  });
  return place;
}

const on = (place: Place, name: string) => readFileSync(path.join(place.workspace, name), "utf8");
const row = (page: Page, text: string) => page.locator("[role=option]", { hasText: text }).first();

/** Waits for a condition outside of the page. */
async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + PATIENCE;
  while (!condition()) {
    assert.ok(Date.now() < end, "the condition was not met");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function assertClean(tab: Tab): void {
  assert.deepEqual([tab.foreign, tab.errors], [[], []]);
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [400, 1400]) {
    test(`every function is there at ${width} pixels, ${colorScheme}, without serious accessibility findings`, async () => {
      const place = worked();
      place.write(".env", "KEY=new-secret\n");
      place.run(["save", "-m", "a new key"]);
      const server = await place.serve();
      const tab = await open(server, { colorScheme, viewport: { width, height: 900 } });
      const { page } = tab;
      const show = async (text: string) => {
        const back = page.getByRole("button", { name: "‹ Timeline" });
        if (width < 760 && (await back.isVisible())) await back.click();
        await row(page, text).click();
        await page.locator("#timeline").focus();
        if (width < 760) await page.keyboard.press("Enter");
        await page.locator("#detail h2", { hasText: text }).waitFor();
      };
      const check = async (name: string) => {
        const found = await new AxeBuilder({ page }).analyze();
        const serious = found.violations.filter(
          ({ impact }) => impact === "serious" || impact === "critical",
        );
        const told = serious.map(
          ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`,
        );
        assert.deepEqual(told, [], name);
      };

      await show("change both ends");
      await page.locator("[data-line]", { hasText: "FIRST" }).first().waitFor();
      await check("a change");

      // Images before and after, and a precious file that is shown only on request.
      await show("add files");
      await page.locator("figure img").nth(1).waitFor();
      await show("a new key");
      await page.getByRole("button", { name: "Show the contents of .env" }).waitFor();
      assert.ok(!(await page.content()).includes("-secret"));
      await page.getByRole("button", { name: "Show the contents of .env" }).click();
      await page.locator("[data-line]", { hasText: "new-secret" }).first().waitFor();

      await show("add files");
      await page.getByRole("button", { name: "Conversation" }).click();
      await page.getByText("As it was when the prompt was given.").waitFor();
      await check("the conversation");
      await page.keyboard.press("Escape");

      await show("change both ends");
      // On a narrow screen, the list of files is folded.
      const history = page.getByRole("button", { name: "History of a.txt" });
      if (!(await history.isVisible())) await page.locator(".files summary").click();
      await history.click();
      await page.getByText("Version 2 of 2").waitFor();
      await page.getByRole("button", { name: "Who wrote it" }).click();
      await page.locator(".blame-line", { hasText: "FIRST" }).waitFor();
      await check("the origin of lines");
      await page.getByRole("slider").fill("0");
      await page.getByText("Version 1 of 2").waitFor();
      await page.locator(".blame-line", { hasText: "first" }).waitFor();
      await page.keyboard.press("Escape");

      await page.getByRole("button", { name: "Revert…" }).click();
      await page.getByRole("button", { name: "Revert 1 file" }).waitFor();
      await check("a plan");
      await page.getByRole("button", { name: "Revert 1 file" }).click();
      await page.getByText("Reverted 1 file.").waitFor();
      assert.equal(on(place, "a.txt"), lines("first", "last"));
      assert.ok(existsSync(path.join(place.workspace, "b.ts")), "later work stays");
      await page.locator(".told").getByRole("button", { name: "Undo" }).click();
      await page.getByText("Undone: 1 file as before.").waitFor();
      assert.equal(on(place, "a.txt"), lines("FIRST", "LAST"));
      assertClean(tab);
      await tab.close();
      await server.end();
    });
  }
}

test("everything can be done with the keyboard alone", async () => {
  const place = worked();
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  const { keyboard } = page;
  await row(page, "before").waitFor();
  await keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await keyboard.press("Escape");

  // To the checkpoint before the first prompt, and restore one of its two hunks.
  for (let count = 0; count < 20; count += 1) {
    if ((await page.locator("[role=option].selected").textContent())?.includes("manual")) break;
    await keyboard.press("j");
  }
  await page.locator("#detail h2", { hasText: "before" }).waitFor();
  await keyboard.press("r");
  await page.getByRole("button", { name: "Restore 3 files" }).waitFor();
  const box = page.getByRole("checkbox", { name: "Everything" });
  const focus = async (reached: () => Promise<boolean>) => {
    for (let count = 0; count < 60 && !(await reached()); count += 1) await keyboard.press("Tab");
    assert.ok(await reached(), "the focus does not get there");
  };
  const isFocused = (selector: string) => () =>
    page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);
  await focus(isFocused(".choose-all input"));
  await keyboard.press("Space");
  assert.equal(await box.isChecked(), false);
  await focus(isFocused(".hunks summary"));
  await keyboard.press("Enter");
  await focus(isFocused(".hunk input"));
  await keyboard.press("Space");
  await page.getByRole("button", { name: "Restore 1 file" }).waitFor();
  await focus(isFocused("dialog button.primary"));
  await keyboard.press("Enter");
  await page.getByText("Restored 1 file.").waitFor();
  assert.equal(on(place, "a.txt"), lines("first", "LAST"));
  assert.ok(existsSync(path.join(place.workspace, "b.ts")));

  // Undo, then revert a prompt.
  await keyboard.press("u");
  await page.getByText("Undone: 1 file as before.").waitFor();
  assert.equal(on(place, "a.txt"), lines("FIRST", "LAST"));
  await keyboard.press("/");
  await keyboard.type("add files");
  await keyboard.press("Enter");
  await page.locator("#timeline [role=option].kind-turn").first().waitFor();
  await page.waitForFunction(
    () => !document.querySelector("#timeline")?.textContent?.includes("change both ends"),
  );
  for (let count = 0; count < 10; count += 1) {
    if (await page.locator("[role=option].kind-turn.selected").count()) break;
    await keyboard.press("j");
  }
  await page.locator("#detail h2", { hasText: "add files" }).waitFor();
  await keyboard.press("v");
  await page.getByRole("button", { name: "Revert 2 files" }).waitFor();
  await focus(isFocused("dialog button.primary"));
  await keyboard.press("Enter");
  await page.getByText("Reverted 2 files.").waitFor();
  assert.ok(!existsSync(path.join(place.workspace, "b.ts")));
  await keyboard.press("u");
  await page.getByText("Undone: 2 files as before.").waitFor();
  assertClean(tab);
  await tab.close();
  await server.end();
});

test("two tabs follow the command line and each other, without a reload", async () => {
  const place = worked();
  const server = await place.serve();
  const [one, two] = [await open(server), await open(server)];
  for (const { page } of [one, two]) await page.locator("[data-connection=live]").waitFor();
  place.write("c.txt", "c\n");
  place.run(["save", "-m", "by the command line"]);
  for (const { page } of [one, two]) await row(page, "by the command line").waitFor();
  place.write("d.txt", "d\n");
  await one.page.getByRole("button", { name: "Save", exact: true }).click();
  await two.page.locator("[role=option].kind-manual", { hasText: "d.txt" }).waitFor();
  for (const tab of [one, two]) {
    assertClean(tab);
    await tab.close();
  }
  await server.end();
});

test("the page says that the server has ended, and repeats no write", async () => {
  const place = worked();
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  await page.locator("[data-connection=live]").waitFor();
  const writes: string[] = [];
  page.on("request", (request) => request.method() === "POST" && writes.push(request.url()));
  await server.end();
  await page.getByText("The server has ended.").waitFor();
  assert.ok((await page.locator(".server-ended").textContent())?.includes("backtrail ui"));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".told", { hasText: "the server does not answer" }).waitFor();
  const again = await place.serve(["--port", String(server.port)]);
  // The new server has another token, so the old page is not let in.
  await page.getByText("The server was started again.").waitFor();
  assert.equal(writes.length, 1);
  await page.goto(again.url);
  await page.locator("[data-connection=live]").waitFor();
  await row(page, "add files").waitFor();
  await tab.close();
  await again.end();
});

test("hostile names, prompts and contents are text", async () => {
  const place = newPlace();
  const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
  place.write("<b>bold<b>.txt", evil);
  place.write("line\nbreak.txt", "x\n");
  place.write("\u202Eltr.txt", "x\n");
  place.run(["save", "-m", evil, "--name", "n<i>"]);
  place.hook("SessionStart", { source: "startup" }, "s<u>");
  place.prompt(evil, { "<svg onload=alert(1)>.txt": evil }, "s<u>");
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  await row(page, "<img src=x").click();
  await page.locator("#detail h2", { hasText: "<script>" }).waitFor();
  await page.locator("[data-line]", { hasText: "onerror" }).first().waitFor();
  for (const text of ["manual", "Files on disk"]) await row(page, text).click();
  assert.equal(
    await page.locator("#app img:not([src='/icon.svg']), #app script, #app u, #app svg[onload]").count(),
    0,
  );
  assert.ok(!(await page.title()).includes("owned"));
  assertClean(tab);
  await tab.close();
  await server.end();
});

test("a long difference has few nodes, and all of it can be reached", async () => {
  const place = newPlace();
  place.write("long.txt", Array.from({ length: 10_000 }, (_, number) => `old ${number}`).join("\n"));
  place.run(["save", "-m", "old"]);
  place.write("long.txt", Array.from({ length: 10_000 }, (_, number) => `new ${number}`).join("\n"));
  place.run(["save", "-m", "long change"]);
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  await row(page, "long change").click();
  await page.locator("[data-line]", { hasText: "new 0" }).first().waitFor();
  const nodes = () =>
    page.evaluate(() => {
      const count = (root: ParentNode): number => {
        let sum = 0;
        for (const element of root.querySelectorAll("*"))
          sum += 1 + (element.shadowRoot ? count(element.shadowRoot) : 0);
        return sum;
      };
      return count(document);
    });
  assert.ok((await nodes()) < 3_000, `${await nodes()} nodes`);
  await page.locator(".code").evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await page.locator("[data-line]", { hasText: "new 9999" }).first().waitFor();
  assert.ok((await nodes()) < 3_000, `${await nodes()} nodes`);
  assertClean(tab);
  await tab.close();
  await server.end();
});

test("the first view loads in one round, and asks no other host", async () => {
  const place = worked();
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  const started: string[] = [];
  page.on("request", (request) => started.push(new URL(request.url()).pathname));
  // The scripts are held back. What is asked for meanwhile waits for none of them.
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/assets/main-*.js", async (route) => {
    await held;
    await route.continue();
  });
  const first = ["/api/checkpoints", "/api/status", "/api/workspaces"];
  void page.goto(`http://127.0.0.1:${server.port}/`).catch(() => {});
  await until(
    () => first.every((wanted) => started.includes(wanted)) && started.some((name) => name.endsWith(".css")),
  );
  const before = started.filter((name) => first.includes(name)).length;
  release();
  await page.locator("[data-connection=live]").waitFor();
  await row(page, "add files").waitFor();
  assert.equal(before, first.length);
  assertClean(tab);
  await tab.close();
  await server.end();
});

test("ten thousand checkpoints are listed page by page, down to the first", async () => {
  const place = newPlace();
  await place.takeMany(10_000);
  const server = await place.serve();
  const tab = await open(server);
  const { page } = tab;
  await row(page, "number 10000").waitFor();
  const drawn = () => page.locator("[role=option]").count();
  assert.ok((await drawn()) < 100, "only what is visible is in the document");
  await page.locator("#timeline").focus();
  await page.keyboard.press("End");
  await page.locator(".foot", { hasText: /^10,000 checkpoints$/ }).waitFor();
  await page.locator("[role=option].selected .title", { hasText: /^number 1$/ }).waitFor();
  assert.ok((await drawn()) < 100);
  await page.keyboard.press("Home");
  await row(page, "Files on disk").waitFor();
  place.write("new.txt", "new");
  place.run(["save", "-m", "while the list is long"]);
  await row(page, "while the list is long").waitFor();
  await page.locator(".foot", { hasText: /^10,001 checkpoints$/ }).waitFor();
  assertClean(tab);
  await tab.close();
  await server.end();
});
