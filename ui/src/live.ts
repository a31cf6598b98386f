// Follows the events of the workspace, and notices when the server has ended.

import { address } from "./api.ts";

export type Connection = "connecting" | "live" | "ended" | "unknown";

export interface Listener {
  /** Something happened, or may have happened while nobody listened. */
  onNews(): void;
  onConnection(connection: Connection): void;
}

const RETRY_MS = 1_500;

/** Listens until the returned function is called. A page that nobody sees does not listen. */
export function follow(listener: Listener): () => void {
  let stopped = false;
  let abort = new AbortController();

  const run = async () => {
    while (!stopped) {
      if (document.hidden) await visible();
      abort = new AbortController();
      try {
        const response = await fetch(address("events"), { signal: abort.signal });
        if (response.status === 401) listener.onConnection("unknown");
        if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
        listener.onConnection("live");
        listener.onNews();
        await pass(response.body, listener);
        if (!stopped && !document.hidden) listener.onConnection("connecting");
      } catch (error) {
        if (stopped) return;
        const isOurs = error instanceof DOMException && error.name === "AbortError";
        if (!isOurs && error instanceof TypeError) listener.onConnection("ended");
      }
      await pause();
    }
  };
  const onVisibility = () => {
    if (document.hidden) abort.abort();
  };
  document.addEventListener("visibilitychange", onVisibility);
  void run();
  return () => {
    stopped = true;
    abort.abort();
    document.removeEventListener("visibilitychange", onVisibility);
  };
}

async function pass(body: ReadableStream<Uint8Array>, listener: Listener): Promise<void> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (value.includes("data:")) listener.onNews();
  }
}

function visible(): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    check();
  });
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, RETRY_MS));
}
