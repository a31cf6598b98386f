// Places checkpoints on parallel lanes, so that forks can be drawn.

/** The most lanes that are drawn. Further lines share the last one. */
export const MAX_LANES = 6;

export interface Lane {
  /** The lane of the checkpoint's own dot. */
  own: number;
  /** The lanes that pass through the upper and the lower half of the row. */
  above: number[];
  below: number[];
  /** The lanes that end at this checkpoint from above: forks begin here. */
  joining: number[];
}

/** Follows checkpoints from the newest to the oldest. Can be continued when older ones are loaded. */
export class Lanes {
  #open: (string | null)[] = [];

  step(id: string, parent: string | null): Lane {
    const above = this.#taken();
    const waiting: number[] = [];
    for (const [lane, wanted] of this.#open.entries()) if (wanted === id) waiting.push(lane);
    const [first, ...joining] = waiting;
    const own = first ?? this.#free();
    for (const lane of joining) this.#open[lane] = null;
    this.#open[own] = parent;
    while (this.#open.length > 0 && this.#open.at(-1) === null) this.#open.pop();
    return { own, above, below: this.#taken(), joining };
  }

  #taken(): number[] {
    const taken: number[] = [];
    for (const [lane, wanted] of this.#open.entries()) if (wanted !== null) taken.push(lane);
    return taken;
  }

  #free(): number {
    const free = this.#open.indexOf(null);
    if (free >= 0) return free;
    return Math.min(this.#open.length, MAX_LANES - 1);
  }
}
