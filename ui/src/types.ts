// The answers of the server. docs/json.md describes them.

export type Kind = "manual" | "automatic" | "feature" | "session" | "turn" | "step" | "safety";

export interface Checkpoint {
  id: string;
  short_id: string;
  name: string | null;
  message: string;
  description: string | null;
  kind: Kind;
  timestamp: string;
  parent: string | null;
  nearest_parent?: string | null;
  files_changed: string[];
  insertions: number;
  deletions: number;
  step: number | null;
  session: string | null;
  agent: string | null;
  author?: string | null;
  turn: number | null;
  prompt: string | null;
  tool: string | null;
  attachments: { name: string; bytes: number }[];
  metadata: Record<string, unknown>;
  pinned: boolean;
  complete: boolean;
  dropped: number;
  scope: string[] | null;
  reverted: boolean;
  truncated: string[];
}

export interface Page {
  checkpoints: Checkpoint[];
  next: string | null;
  current: string | null;
}

export type Status = "added" | "modified" | "deleted" | "type_changed" | "mode_changed";

export interface Hunk {
  id: string;
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  section: string;
  lines: string[];
}

export interface Change {
  path: string;
  status: Status;
  insertions: number;
  deletions: number;
  binary: boolean;
  hidden: boolean;
  hunks?: Hunk[];
}

export interface Skipped {
  path: string;
  reason: string;
}

export interface Diff {
  from: string | null;
  to: string | null;
  changes: Change[];
  patch: string;
  skipped: Skipped[];
  changes_total: number;
  hidden_files: string[];
  cut_files: string[];
  truncated: string[];
}

export interface StatusAnswer {
  checkpoint: Checkpoint | null;
  changes: Change[];
  skipped: Skipped[];
  changes_total: number;
}

export interface Conflict {
  path: string;
  reason: string;
}

export interface Plan {
  plan: string | null;
  changes: Change[];
  applied: boolean;
  safety: string | null;
  conflicts: Conflict[];
  stays: Conflict[];
  not_restored: Skipped[];
  changes_total: number;
  truncated: string[];
  reverted?: string[];
  merged?: string[];
  shared?: string[];
}

export interface Version {
  checkpoint: string;
  status: Status;
  bytes: number | null;
  insertions: number;
  deletions: number;
  binary: boolean;
}

export interface History {
  path: string;
  versions: Version[];
  hidden: boolean;
}

export interface BlameRange {
  start: number;
  lines: number;
  checkpoint: string | null;
  turn: number | null;
  session: string | null;
  agent: string | null;
  tool: string | null;
  prompt: string | null;
  timestamp: string | null;
  approximate: boolean;
}

export interface Blame {
  path: string;
  at: string | null;
  ranges: BlameRange[];
  hidden: boolean;
}

export interface Conversation {
  checkpoint: string;
  agent: string | null;
  prompt: string | null;
  messages: { role: "user" | "assistant" | "tool"; text: string }[];
  omitted: number;
}

export interface Workspace {
  path: string;
  exists: boolean;
  store: string;
  bytes: number;
  checkpoints: number;
  newest: string | null;
}
