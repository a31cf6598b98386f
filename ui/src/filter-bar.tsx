// Search and filters.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { firstLine } from "./text.ts";
import { type Filters, NO_FILTERS, type State } from "./timeline-store.ts";

const KINDS = ["manual", "automatic", "feature", "session", "turn", "step", "safety"];
const WAIT_MS = 250;

interface Properties {
  state: State;
  search: { current: HTMLInputElement | null };
  onFilters: (filters: Filters) => void;
  onLeave: () => void;
}

export function FilterBar({ state, search, onFilters, onLeave }: Properties) {
  const [draft, setDraft] = useState(state.filters);
  const [isOpen, setIsOpen] = useState(false);
  const seen = useRef({ sessions: new Set<string>(), agents: new Set<string>() });
  const { sessions, agents } = useMemo(() => {
    for (const { session, agent } of state.checkpoints) {
      if (session !== null && seen.current.sessions.size < 200) seen.current.sessions.add(session);
      if (agent !== null && seen.current.agents.size < 50) seen.current.agents.add(agent);
    }
    return { sessions: [...seen.current.sessions], agents: [...seen.current.agents].sort() };
  }, [state.checkpoints]);
  useEffect(() => {
    const same = Object.keys(draft).every(
      (key) => draft[key as keyof Filters] === state.filters[key as keyof Filters],
    );
    if (same) return;
    const timer = setTimeout(() => onFilters(draft), WAIT_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const set = (change: Partial<Filters>) => setDraft({ ...draft, ...change });
  const count = Object.entries(draft).filter(([name, value]) => name !== "grep" && value !== "").length;
  return (
    <form
      class="filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onFilters(draft);
        onLeave();
      }}
    >
      <div class="search-line">
        <input
          ref={search}
          type="search"
          aria-label="Search prompts and messages"
          placeholder="Search   /"
          value={draft.grep}
          onInput={(event) => set({ grep: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            set({ grep: "" });
            onLeave();
          }}
        />
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls="more-filters"
          onClick={() => setIsOpen(!isOpen)}
        >
          Filters{count > 0 ? ` (${count})` : ""}
        </button>
      </div>
      <div id="more-filters" class="more-filters" hidden={!isOpen}>
        <Choose label="Kind" value={draft.kind} values={KINDS} onChange={(kind) => set({ kind })} />
        <Choose
          label="Session"
          value={draft.session}
          values={sessions}
          onChange={(session) => set({ session })}
        />
        <Choose label="Agent" value={draft.agent} values={agents} onChange={(agent) => set({ agent })} />
        <label>
          Path
          <input
            type="text"
            value={draft.path}
            placeholder="src/"
            onInput={(event) => set({ path: event.currentTarget.value })}
          />
        </label>
        <button type="button" onClick={() => setDraft(NO_FILTERS)}>
          Clear
        </button>
      </div>
    </form>
  );
}

function Choose(properties: {
  label: string;
  value: string;
  values: string[];
  onChange: (value: string) => void;
}) {
  const { label, value, values, onChange } = properties;
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">any</option>
        {values.map((found) => (
          <option key={found} value={found}>
            {firstLine(found)}
          </option>
        ))}
      </select>
    </label>
  );
}
