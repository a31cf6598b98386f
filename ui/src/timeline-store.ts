// The loaded part of the timeline. Loads older pages on demand, and new checkpoints when something happens.

import { isAborted, read, sentence } from "./api.ts";
import type { Checkpoint, Page, StatusAnswer } from "./types.ts";

export interface Filters {
  grep: string;
  session: string;
  agent: string;
  kind: string;
  path: string;
}

export const NO_FILTERS: Filters = { grep: "", session: "", agent: "", kind: "", path: "" };

export interface State {
  checkpoints: readonly Checkpoint[];
  next: string | null;
  current: string | null;
  status: StatusAnswer | null;
  loading: boolean;
  loaded: boolean;
  problem: string | null;
  filters: Filters;
}

const FIRST_PAGE = 200;
const OLDER_PAGE = 500;

export class TimelineStore {
  state: State = {
    checkpoints: [],
    next: null,
    current: null,
    status: null,
    loading: false,
    loaded: false,
    problem: null,
    filters: NO_FILTERS,
  };
  #listeners = new Set<() => void>();
  #abort = new AbortController();
  #refreshing: Promise<void> | null = null;
  #refreshAgain = false;
  #statusAbort = new AbortController();

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.#listeners) listener();
  }

  /** Begins anew: with other filters, or another workspace. */
  async restart(filters: Filters): Promise<void> {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#set({ filters, loading: true, problem: null, loaded: false });
    try {
      const page = await this.#page(FIRST_PAGE, null);
      this.#set({ ...page, loading: false, loaded: true });
    } catch (error) {
      if (!isAborted(error)) this.#set({ loading: false, loaded: true, problem: sentence(error) });
    }
  }

  /** Loads the next older page. */
  async older(): Promise<void> {
    const { next, loading } = this.state;
    if (next === null || loading) return;
    this.#set({ loading: true });
    try {
      const page = await this.#page(OLDER_PAGE, next);
      const checkpoints = this.state.checkpoints.concat(page.checkpoints);
      this.#set({ checkpoints, next: page.next, loading: false, problem: null });
    } catch (error) {
      if (!isAborted(error)) this.#set({ loading: false, problem: sentence(error) });
    }
  }

  /** Loads everything that is older. */
  async oldest(): Promise<void> {
    const { filters } = this.state;
    while (this.state.next !== null && this.state.filters === filters && this.state.problem === null) {
      if (this.state.loading) await new Promise((resolve) => setTimeout(resolve, 20));
      else await this.older();
    }
  }

  /** Reads the newest page again, and joins it with what is loaded. */
  refresh(): Promise<void> {
    if (this.#refreshing) {
      this.#refreshAgain = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#refresh().finally(() => {
      this.#refreshing = null;
      if (this.#refreshAgain) {
        this.#refreshAgain = false;
        void this.refresh();
      }
    });
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    if (!this.state.loaded) return;
    void this.readStatus();
    const { filters } = this.state;
    try {
      const page = await this.#page(FIRST_PAGE, null);
      if (this.state.filters === filters) this.#set({ ...this.#joined(page), problem: null });
    } catch (error) {
      if (!isAborted(error)) this.#set({ problem: sentence(error) });
    }
  }

  #joined(page: Page): Partial<State> {
    const known = this.state.checkpoints;
    const last = page.checkpoints.at(-1);
    const at = last ? known.findIndex((checkpoint) => checkpoint.id === last.id) : -1;
    // If so much is new that the page does not reach what is known, that is loaded again on demand.
    if (at < 0) return page;
    return { checkpoints: page.checkpoints.concat(known.slice(at + 1)), current: page.current };
  }

  async readStatus(): Promise<void> {
    this.#statusAbort.abort();
    this.#statusAbort = new AbortController();
    try {
      this.#set({ status: await read<StatusAnswer>("status", {}, this.#statusAbort.signal) });
    } catch (error) {
      if (!isAborted(error)) this.#set({ status: null });
    }
  }

  /** Replaces a checkpoint that was changed. */
  replace(checkpoint: Checkpoint): void {
    const merge = (known: Checkpoint) =>
      known.id === checkpoint.id ? { ...known, pinned: checkpoint.pinned } : known;
    this.#set({ checkpoints: this.state.checkpoints.map(merge) });
  }

  async #page(limit: number, cursor: string | null): Promise<Page> {
    const { grep, session, kind, path } = this.state.filters;
    return read<Page>("checkpoints", { limit, cursor, grep, session, kind, path }, this.#abort.signal);
  }
}
