// Small parts that several views use.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { plural } from "./text.ts";
import type { Change, Checkpoint, Status } from "./types.ts";

export function Counts({ insertions, deletions }: { insertions: number; deletions: number }) {
  if (insertions === 0 && deletions === 0) return null;
  return (
    <span class="counts">
      {insertions > 0 && <span class="plus">+{insertions.toLocaleString("en")}</span>}
      {deletions > 0 && <span class="minus">−{deletions.toLocaleString("en")}</span>}
    </span>
  );
}

const LETTERS: Record<Status, string> = {
  added: "A",
  modified: "M",
  deleted: "D",
  type_changed: "T",
  mode_changed: "P",
};

const WORDS: Record<Status, string> = {
  added: "added",
  modified: "modified",
  deleted: "deleted",
  type_changed: "type changed",
  mode_changed: "permissions changed",
};

export function StatusLetter({ change }: { change: Change }) {
  return (
    <span class={`letter ${change.status}`} title={WORDS[change.status]}>
      <span aria-hidden="true">{LETTERS[change.status]}</span>
      <span class="hidden-text">{WORDS[change.status]}: </span>
    </span>
  );
}

/** Returns what a change will do to the file on disk. */
export function effect(status: Status): string {
  if (status === "added") return "comes back";
  if (status === "deleted") return "is removed";
  return status === "mode_changed" ? "gets other permissions" : "is changed";
}

export function title(checkpoint: Checkpoint): string {
  if (checkpoint.kind !== "step") return checkpoint.prompt ?? checkpoint.name ?? checkpoint.message;
  const [first, ...others] = checkpoint.files_changed;
  if (first === undefined) return checkpoint.message;
  return others.length === 0 ? first : `${first} and ${plural(others.length, "other file")}`;
}

export function Dialog(properties: {
  label: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const opener = useRef<Element | null>(null);
  useEffect(() => {
    opener.current = document.activeElement;
    ref.current?.showModal();
    return () => {
      if (opener.current instanceof HTMLElement) opener.current.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={properties.class ?? ""}
      aria-label={properties.label}
      onCancel={(event) => {
        event.preventDefault();
        properties.onClose();
      }}
    >
      {properties.children}
    </dialog>
  );
}

export function Note({
  children,
  kind = "note",
}: {
  children: ComponentChildren;
  kind?: "note" | "problem";
}) {
  return <p class={`note ${kind}`}>{children}</p>;
}
