// Turns facts into words.

/** Returns a number with its noun. */
export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns the first line of a text that is not blank. */
export function firstLine(text: string): string {
  return visible(
    text
      .split("\n", 50)
      .find((line) => line.trim() !== "")
      ?.trim() ?? "",
  );
}

/** Replaces characters that are invisible, or that would reorder the text around them. */
export function visible(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** Returns how long ago a moment was, in words. */
export function ago(timestamp: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(timestamp)) / 1000));
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  const days = Math.round(seconds / 86_400);
  return days < 60 ? `${plural(days, "day")} ago` : timestamp.slice(0, 10);
}

/** Returns the local date and time of a moment. */
export function moment(timestamp: string): string {
  return new Date(timestamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Returns a number of bytes in words. */
export function bytes(count: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}
