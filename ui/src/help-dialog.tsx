// The list of all keys.

import { Dialog } from "./parts.tsx";

const KEYS: [string, string][] = [
  ["j k", "next and previous entry"],
  ["↵", "go to the change; Esc goes back"],
  ["← →", "fold and unfold the steps of a prompt"],
  ["End", "the oldest entry"],
  ["/", "search"],
  ["[ ]", "previous and next file"],
  ["d", "side by side, or one column"],
  ["w", "wrap long lines"],
  ["h", "versions of the file, and who wrote which line"],
  ["c", "the conversation up to the prompt"],
  ["r", "restore: look at the plan first"],
  ["v", "revert just this prompt or step"],
  ["u", "undo the last restore or revert"],
  ["s", "save a checkpoint now"],
  ["p", "pin, or unpin"],
  ["?", "this list"],
];

export function HelpDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label="Keys" class="help" onClose={onClose}>
      <header>
        <h2>Keys</h2>
      </header>
      <dl>
        {KEYS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        The page contains open source software: <a href="/licenses.txt">licences</a>
      </p>
      <footer>
        <button type="button" class="primary" onClick={onClose} autofocus>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
