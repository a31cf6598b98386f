// What a restore or revert would do, with a choice of files and hunks. Nothing is written before the button is used.

import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, sentence, write } from "./api.ts";
import { type Choice, everything, hasHunk, isEverything, request, toggleFile, toggleHunk } from "./choice.ts";
import { Counts, Dialog, effect, Note, StatusLetter } from "./parts.tsx";
import { plural, visible } from "./text.ts";
import type { Change, Hunk, Plan } from "./types.ts";

export interface Asked {
  /** The heading, and the word on the button. */
  title: string;
  verb: string;
  /** The request that plans it, and its body. */
  planner: "restore/plan" | "revert/plan";
  body: Record<string, unknown>;
}

const MAX_FILES = 300;
const MAX_HUNK_LINES = 200;
const WAIT_MS = 150;

export function PlanDialog({
  asked,
  onClose,
  onDone,
}: {
  asked: Asked;
  onClose: () => void;
  onDone: (plan: Plan) => void;
}) {
  const [whole, setWhole] = useState<Plan | null>(null);
  const [choice, setChoice] = useState<Choice>(new Map());
  /** The plan of the present choice. `null` while it is made. */
  const [plan, setPlan] = useState<Plan | null>(null);
  const [options, setOptions] = useState<Record<string, boolean>>({});
  const [problem, setProblem] = useState<string | null>(null);
  const [isStale, setIsStale] = useState(false);
  const [isApplying, setIsApplying] = useState(false);
  const newest = useRef(0);
  const body = { ...asked.body, ...options };

  const makeWhole = async () => {
    const own = ++newest.current;
    setPlan(null);
    setProblem(null);
    setIsStale(false);
    try {
      const made = await write<Plan>(asked.planner, body);
      if (own !== newest.current) return;
      setWhole(made);
      setChoice(everything(made));
      setPlan(made);
    } catch (error) {
      if (own === newest.current) setProblem(sentence(error));
    }
  };
  useEffect(() => void makeWhole(), [options]);

  const choose = (next: Choice) => {
    setChoice(next);
    if (!whole) return;
    const own = ++newest.current;
    if (isEverything(whole, next)) {
      void makeWhole();
      return;
    }
    setPlan(null);
    if (next.size === 0) return;
    setTimeout(async () => {
      if (own !== newest.current) return;
      try {
        const made = await write<Plan>(asked.planner, { ...body, ...request(next) });
        if (own === newest.current) setPlan(made);
      } catch (error) {
        if (own === newest.current) setProblem(sentence(error));
      }
    }, WAIT_MS);
  };

  const apply = async () => {
    if (!plan?.plan) return;
    setIsApplying(true);
    setProblem(null);
    try {
      onDone(await write<Plan>("apply", { plan: plan.plan }));
    } catch (error) {
      setIsApplying(false);
      setProblem(sentence(error));
      if (error instanceof Refused && error.code === "plan_changed") setIsStale(true);
    }
  };

  const conflicts = plan?.conflicts ?? [];
  const isRevert = asked.planner === "revert/plan";
  const isBlocked = conflicts.length > 0 && !options["skip_conflicts"] && !options["markers"];
  const canApply = plan !== null && plan.changes.length > 0 && !isBlocked && !isStale && !isApplying;
  return (
    <Dialog label={asked.title} class="plan" onClose={onClose}>
      <header>
        <h2>{asked.title}</h2>
        <p class="quiet">
          {isRevert
            ? "Only these changes are taken back. Later work stays."
            : "A safety checkpoint is taken first, so nothing is lost."}
        </p>
      </header>
      <div class="plan-body">
        {problem && <Note kind="problem">{problem}</Note>}
        {isStale && (
          <button type="button" onClick={() => void makeWhole()}>
            Look at the new plan
          </button>
        )}
        {!whole && !problem && <p role="status">Planning…</p>}
        {whole && whole.changes.length === 0 && (
          <p>The files are like this already. There is nothing to do.</p>
        )}
        {whole && whole.changes.length > 0 && <PlannedFiles plan={whole} choice={choice} onChoose={choose} />}
        {whole && <Facts plan={whole} />}
        {conflicts.length > 0 && (
          <fieldset class="conflicts">
            <legend>{plural(conflicts.length, "conflict")}</legend>
            <ul>
              {conflicts.slice(0, 50).map((conflict) => (
                <li key={conflict.path}>
                  <code>{visible(conflict.path)}</code> {visible(conflict.reason)}
                </li>
              ))}
            </ul>
          </fieldset>
        )}
        {(conflicts.length > 0 || options["skip_conflicts"] || options["markers"]) && (
          <p class="options">
            <Option
              name="skip_conflicts"
              label="Leave files with conflicts as they are"
              {...{ options, setOptions }}
            />
            {isRevert && (
              <Option
                name="markers"
                label="Write conflict markers into the files"
                {...{ options, setOptions }}
              />
            )}
          </p>
        )}
      </div>
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="primary" disabled={!canApply} onClick={apply} autofocus>
          {isApplying ? "Working…" : `${asked.verb} ${plan ? plural(plan.changes_total, "file") : ""}`}
        </button>
      </footer>
    </Dialog>
  );
}

function Option(properties: {
  name: string;
  label: string;
  options: Record<string, boolean>;
  setOptions: (options: Record<string, boolean>) => void;
}) {
  const { name, label, options, setOptions } = properties;
  return (
    <label>
      <input
        type="checkbox"
        checked={options[name] ?? false}
        onChange={(event) => setOptions(event.currentTarget.checked ? { [name]: true } : {})}
      />{" "}
      {label}
    </label>
  );
}

function Facts({ plan }: { plan: Plan }) {
  return (
    <>
      {plan.truncated.map((note) => (
        <Note key={note}>{note}</Note>
      ))}
      {(plan.merged?.length ?? 0) > 0 && (
        <Note>{plural(plan.merged?.length ?? 0, "file")} merged with later edits.</Note>
      )}
      {(plan.shared?.length ?? 0) > 0 && (
        <Note>
          {plural(plan.shared?.length ?? 0, "file")} stay, because another session may have changed them.
        </Note>
      )}
      {plan.not_restored.length > 0 && (
        <Note>
          {plural(plan.not_restored.length, "path")} on disk stay: the checkpoint could not capture them (
          {visible(plan.not_restored[0]?.path ?? "")}…).
        </Note>
      )}
      {plan.stays.length > 0 && <Note>{plural(plan.stays.length, "path")} stay on disk.</Note>}
    </>
  );
}

function PlannedFiles({
  plan,
  choice,
  onChoose,
}: {
  plan: Plan;
  choice: Choice;
  onChoose: (choice: Choice) => void;
}) {
  const all = isEverything(plan, choice);
  return (
    <>
      <label class="choose-all">
        <input type="checkbox" checked={all} onChange={() => onChoose(all ? new Map() : everything(plan))} />{" "}
        Everything
      </label>
      <ul class="planned">
        {plan.changes.slice(0, MAX_FILES).map((change) => (
          <li key={change.path}>
            <PlannedFile change={change} choice={choice} onChoose={onChoose} />
          </li>
        ))}
      </ul>
      {plan.changes_total > MAX_FILES && (
        <Note>and {plural(plan.changes_total - MAX_FILES, "more file")}</Note>
      )}
    </>
  );
}

function PlannedFile({
  change,
  choice,
  onChoose,
}: {
  change: Change;
  choice: Choice;
  onChoose: (choice: Choice) => void;
}) {
  const chosen = choice.get(change.path);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = chosen !== undefined && chosen !== "all";
  }, [chosen]);
  const hunks = change.hunks ?? [];
  return (
    <>
      <label>
        <input
          ref={box}
          type="checkbox"
          checked={chosen === "all"}
          onChange={() => onChoose(toggleFile(choice, change))}
        />
        <StatusLetter change={change} />
        <span class="name">{visible(change.path)}</span>
        <span class="quiet">{effect(change.status)}</span>
        <Counts insertions={change.insertions} deletions={change.deletions} />
      </label>
      {hunks.length > 0 && (
        <details class="hunks">
          <summary>{plural(hunks.length, "hunk")}</summary>
          {hunks.slice(0, 100).map((hunk, index) => (
            <HunkChoice
              key={hunk.id}
              hunk={hunk}
              label={`Hunk ${index + 1} of ${visible(change.path)}`}
              checked={hasHunk(choice, change.path, hunk.id)}
              onToggle={() => onChoose(toggleHunk(choice, change, hunk.id))}
            />
          ))}
          {hunks.length > 100 && <Note>and {plural(hunks.length - 100, "more hunk")}</Note>}
        </details>
      )}
    </>
  );
}

function HunkChoice(properties: { hunk: Hunk; label: string; checked: boolean; onToggle: () => void }) {
  const { hunk, label, checked, onToggle } = properties;
  const lines = hunk.lines.slice(0, MAX_HUNK_LINES);
  return (
    <div class="hunk">
      <label>
        <input type="checkbox" checked={checked} onChange={onToggle} aria-label={label} />
        <span class="quiet">
          line {hunk.new_start} {visible(hunk.section)}
        </span>
      </label>
      <pre>
        {lines.map((line, index) => (
          <span key={index} class={line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : ""}>
            {visible(line.replace(/\n$/, ""))}
            {"\n"}
          </span>
        ))}
        {hunk.lines.length > lines.length && (
          <span>… {plural(hunk.lines.length - lines.length, "more line")}</span>
        )}
      </pre>
    </div>
  );
}
