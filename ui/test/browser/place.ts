// A temporary workspace with its own home, a running server, and a browser.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Generous: the machine may be busy. */
export const PATIENCE = 180_000;

const BINARY = process.env["BACKTRAIL"] ?? "backtrail";
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export interface Server {
  url: string;
  port: number;
  end(): Promise<void>;
}

export class Place {
  readonly root = realpathSync(mkdtempSync(path.join(tmpdir(), "backtrail-page-")));
  readonly workspace = path.join(this.root, "ws");
  readonly home = path.join(this.root, "home");
  #children: ChildProcess[] = [];

  constructor() {
    mkdirSync(this.workspace);
    mkdirSync(this.home);
  }

  get environment(): NodeJS.ProcessEnv {
    return {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      HOME: this.home,
      BACKTRAIL_HOME: path.join(this.home, "backtrail"),
      GIT_CONFIG_NOSYSTEM: "1",
      TMPDIR: this.root,
      TZ: "UTC",
    };
  }

  write(name: string, content: string | Buffer): void {
    const file = path.join(this.workspace, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  /** Runs the program, which must succeed. Returns its stdout. */
  run(words: string[], input = ""): string {
    const options = { cwd: this.workspace, env: this.environment, input, maxBuffer: 1 << 28 };
    return execFileSync(BINARY, words, { ...options, stdio: ["pipe", "pipe", "ignore"] }).toString();
  }

  /** Calls the hook of Claude Code, as the agent does. */
  hook(event: string, more: Record<string, unknown>, session = "5f3d1c9e-session"): void {
    const payload = {
      session_id: session,
      cwd: this.workspace,
      hook_event_name: event,
      transcript_path: path.join(this.home, `transcript-${session}.jsonl`),
      permission_mode: "default",
      ...more,
    };
    this.run(["hook", "claude"], JSON.stringify(payload));
  }

  /** Lets an agent work for one prompt: each file is one step. */
  prompt(text: string, files: Record<string, string | Buffer>, session?: string): void {
    this.hook("UserPromptSubmit", { prompt: text }, session);
    for (const [name, content] of Object.entries(files)) {
      const tool = { tool_name: "Write", tool_input: { file_path: path.join(this.workspace, name) } };
      this.hook("PreToolUse", tool, session);
      this.write(name, content);
      this.hook("PostToolUse", tool, session);
    }
    this.hook("Stop", { stop_hook_active: false }, session);
  }

  async serve(words: string[] = []): Promise<Server> {
    const child = spawn(BINARY, ["ui", "--no-open", "--json", ...words], {
      cwd: this.workspace,
      env: this.environment,
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#children.push(child);
    const lines = createInterface({ input: child.stdout });
    const first = await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      child.once("exit", () => reject(new Error("the server ended before it was ready")));
    });
    const { url, port } = JSON.parse(first);
    const end = () =>
      new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
        child.kill("SIGTERM");
      });
    return { url, port, end };
  }

  remove(): void {
    for (const child of this.#children) if (child.exitCode === null) child.kill("SIGKILL");
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

let browser: Promise<Browser> | null = null;

export function isChromiumInstalled(): boolean {
  return existsSync(CHROMIUM);
}

export async function closeBrowser(): Promise<void> {
  const running = await browser;
  browser = null;
  await running?.close();
}

export interface Tab {
  page: Page;
  /** Requests to another host than the server. There must be none. */
  foreign: string[];
  /** Errors of scripts, and violations of the policy. */
  errors: string[];
  close(): Promise<void>;
}

/** Opens the page in a context of its own. */
export async function open(server: Server, options: BrowserContextOptions = {}): Promise<Tab> {
  browser ??= chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    timeout: PATIENCE,
  });
  const context = await (await browser).newContext({ viewport: { width: 1400, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  context.setDefaultNavigationTimeout(PATIENCE);
  const page = await context.newPage();
  const foreign: string[] = [];
  const errors: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.host !== `127.0.0.1:${server.port}`)
      foreign.push(request.url());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text()))
      errors.push(message.text());
  });
  await page.goto(server.url);
  await page.locator("#timeline").waitFor();
  return { page, foreign, errors, close: () => context.close() };
}
