// The conversation up to a prompt.

import { read } from "./api.ts";
import { useLoaded } from "./hooks.ts";
import { Dialog, Note } from "./parts.tsx";
import { plural, visible } from "./text.ts";
import type { Conversation } from "./types.ts";

const NAMES = { user: "You", assistant: "Agent", tool: "Tool" };

export function ConversationDialog({ checkpoint, onClose }: { checkpoint: string; onClose: () => void }) {
  const loaded = useLoaded(
    (signal) => read<Conversation>("conversation", { checkpoint }, signal),
    [checkpoint],
  );
  return (
    <Dialog label="Conversation" class="conversation" onClose={onClose}>
      <header>
        <h2>Conversation</h2>
        <p class="quiet">As it was when the prompt was given.</p>
      </header>
      <div class="messages" tabIndex={0} role="region" aria-label="Messages">
        {loaded.state === "loading" && <p role="status">Loading…</p>}
        {loaded.state === "failed" && <Note>No conversation was kept: {loaded.problem}</Note>}
        {loaded.state === "ready" && (
          <>
            {loaded.value.omitted > 0 && (
              <Note>{plural(loaded.value.omitted, "earlier message")} are not shown.</Note>
            )}
            {loaded.value.messages.map((message, index) => (
              <article key={index} class={`message ${message.role}`}>
                <h3>{NAMES[message.role]}</h3>
                <p>{visible(message.text)}</p>
              </article>
            ))}
            {loaded.value.prompt !== null && (
              <article class="message user next">
                <h3>Then this prompt</h3>
                <p>{visible(loaded.value.prompt)}</p>
              </article>
            )}
          </>
        )}
      </div>
      <footer>
        <button type="button" class="primary" onClick={onClose} autofocus>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
