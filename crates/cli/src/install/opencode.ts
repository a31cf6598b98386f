// Installed by backtrail. Sends opencode's events to `backtrail hook opencode`, which takes the checkpoints.
//
// It never blocks opencode: if anything fails here, opencode continues as if the plugin were not there.
import { spawn } from "node:child_process"

import type { Plugin } from "@opencode-ai/plugin"

const PROGRAM = ["backtrail"]
const PATIENCE_MILLISECONDS = 20_000

/** Resolves when the program has taken its checkpoint, could not be started, or takes too long. */
function tell(payload: Record<string, unknown>): Promise<void> {
  return new Promise((resolve) => {
    const patience = setTimeout(resolve, PATIENCE_MILLISECONDS)
    const done = () => {
      clearTimeout(patience)
      resolve()
    }
    try {
      const [command, ...words] = PROGRAM
      const child = spawn(command, [...words, "hook", "opencode"], { stdio: ["pipe", "ignore", "ignore"] })
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      done()
    }
  })
}

export const Backtrail: Plugin = async ({ client, directory }) => {
  /** The parent of each session; the session itself if it has no parent. */
  const starters = new Map<string, string>()

  async function starter(session: string): Promise<string> {
    const known = starters.get(session)
    if (known !== undefined) return known
    let parent: string | undefined
    try {
      const found = await client.session.get({ path: { id: session } })
      parent = found.data?.parentID
    } catch {
      // Without an answer the session counts as one without a parent.
    }
    starters.set(session, parent ?? session)
    return parent ?? session
  }

  /** Builds a payload. A subagent has its own session, but its work counts for the topmost session. */
  async function about(session: string, event: string): Promise<Record<string, unknown>> {
    let top = session
    for (let depth = 0; depth < 16; depth++) {
      const above = await starter(top)
      if (above === top) break
      top = above
    }
    const subagent = top === session ? {} : { agent_id: session }
    return { session_id: top, hook_event_name: event, cwd: directory, ...subagent }
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.created") {
        const { id, parentID } = event.properties.info
        starters.set(id, parentID ?? id)
        if (parentID === undefined) await tell({ ...(await about(id, "SessionStart")), source: "startup" })
      } else if (event.type === "session.idle") {
        const session = event.properties.sessionID
        const isSubagent = (await starter(session)) !== session
        await tell(await about(session, isSubagent ? "SubagentStop" : "Stop"))
      } else if (event.type === "session.deleted") {
        const { id, parentID } = event.properties.info
        if (parentID === undefined) await tell(await about(id, "SessionEnd"))
      }
    },
    "chat.message": async (input, output) => {
      if ((await starter(input.sessionID)) !== input.sessionID) return
      const texts = output.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
      const prompt = { prompt: texts.join("\n"), prompt_id: output.message.id }
      await tell({ ...(await about(input.sessionID, "UserPromptSubmit")), ...prompt })
    },
    "tool.execute.before": async (input, output) => {
      const tool = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }
      await tell({ ...(await about(input.sessionID, "PreToolUse")), ...tool })
    },
    "tool.execute.after": async (input) => {
      const tool = { tool_name: input.tool, tool_use_id: input.callID }
      await tell({ ...(await about(input.sessionID, "PostToolUse")), ...tool })
    },
  }
}
