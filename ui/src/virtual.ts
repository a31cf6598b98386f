// Finds the rows of a long list that are visible.

/** The positions of rows of different heights. */
export class Positions {
  readonly tops: Float64Array;

  constructor(heights: readonly number[]) {
    this.tops = new Float64Array(heights.length + 1);
    for (const [index, height] of heights.entries()) this.tops[index + 1] = (this.tops[index] ?? 0) + height;
  }

  get count(): number {
    return this.tops.length - 1;
  }

  get total(): number {
    return this.tops[this.count] ?? 0;
  }

  top(index: number): number {
    return this.tops[Math.min(index, this.count)] ?? 0;
  }

  /** Returns the row at a position. */
  at(position: number): number {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.top(middle) <= position) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** Returns the first row to draw, and the one after the last. */
  visible(scrollTop: number, height: number, margin: number): [number, number] {
    if (this.count === 0) return [0, 0];
    return [this.at(scrollTop - margin), Math.min(this.count, this.at(scrollTop + height + margin) + 1)];
  }
}
