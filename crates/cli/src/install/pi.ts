// Installed by backtrail. Sends pi's events to `backtrail hook pi`, which takes the checkpoints.
//
// It never blocks pi: if anything fails here, pi continues as if the extension were not there.
import { spawn } from "node:child_process"

import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent"

const PROGRAM = ["backtrail"]
const PATIENCE_MILLISECONDS = 20_000

/** Resolves with the program's answer when it has taken its checkpoint, could not be started, or takes too long. */
function tell(payload: Record<string, unknown>): Promise<string> {
  return new Promise((resolve) => {
    let answer = ""
    const patience = setTimeout(() => resolve(""), PATIENCE_MILLISECONDS)
    const done = () => {
      clearTimeout(patience)
      resolve(answer.trim())
    }
    try {
      const [command, ...words] = PROGRAM
      const child = spawn(command, [...words, "hook", "pi"], { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", done)
      child.on("close", done)
      child.stdout.on("data", (part) => (answer += part))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      done()
    }
  })
}

function about(event: string, ctx: ExtensionContext): Record<string, unknown> {
  return {
    session_id: ctx.sessionManager.getSessionId(),
    transcript_path: ctx.sessionManager.getSessionFile(),
    hook_event_name: event,
    cwd: ctx.cwd,
  }
}

export default function (pi: ExtensionAPI) {
  pi.on("session_start", async (event, ctx) => {
    await tell({ ...about("SessionStart", ctx), source: event.reason })
  })
  pi.on("before_agent_start", async (event, ctx) => {
    const news = await tell({ ...about("UserPromptSubmit", ctx), prompt: event.prompt })
    if (news !== "") return { message: { customType: "backtrail", content: news, display: true } }
  })
  pi.on("tool_call", async (event, ctx) => {
    const tool = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId }
    await tell({ ...about("PreToolUse", ctx), ...tool })
  })
  pi.on("tool_result", async (event, ctx) => {
    const tool = { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId }
    await tell({ ...about("PostToolUse", ctx), ...tool })
  })
  pi.on("agent_end", async (_event, ctx) => {
    await tell(about("Stop", ctx))
  })
  pi.on("session_shutdown", async (_event, ctx) => {
    await tell(about("SessionEnd", ctx))
  })
}
