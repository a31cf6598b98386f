// Small hooks that several parts of the page use.

import { useEffect, useRef, useState } from "preact/hooks";
import { isAborted, sentence } from "./api.ts";
import type { State, TimelineStore } from "./timeline-store.ts";

export function useTimeline(store: TimelineStore): State {
  const [state, set] = useState(store.state);
  useEffect(() => {
    set(store.state);
    return store.subscribe(() => set(store.state));
  }, [store]);
  return state;
}

export type Loaded<T> =
  | { state: "loading" }
  | { state: "ready"; value: T }
  | { state: "failed"; problem: string };

/** Loads something, again whenever a dependency changes. An answer that is not wanted any more is dropped. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, dependencies: unknown[]): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>({ state: "loading" });
  useEffect(() => {
    const abort = new AbortController();
    set({ state: "loading" });
    load(abort.signal).then(
      (value) => !abort.signal.aborted && set({ state: "ready", value }),
      (error) =>
        !isAborted(error) && !abort.signal.aborted && set({ state: "failed", problem: sentence(error) }),
    );
    return () => abort.abort();
  }, dependencies);
  return loaded;
}

/** Returns the value of a media query. */
export function useMedia(query: string): boolean {
  const [matches, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = () => set(list.matches);
    update();
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return matches;
}

/** Returns the time, in steps of half a minute. */
export function useNow(): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Returns the newest value without starting effects again. */
export function useLatest<T>(value: T): { readonly current: T } {
  const ref = useRef(value);
  ref.current = value;
  return ref;
}

/** Returns the size of an element. */
export function useHeight(ref: { current: HTMLElement | null }): number {
  const [height, set] = useState(600);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => set(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return height;
}
