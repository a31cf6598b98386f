//! Where the system gives no more threads or processes: commands do with the one that they have, and no hook breaks.

use crate::{owners::Owner, place::Place};

/// Runs a command that gets neither.
const ALONE: &str = "alone() { (ulimit -u 1; exec \"$@\"); }; ";

#[test]
fn a_hook_without_threads_and_processes_ends_well_and_says_so() {
    for (agent, answer) in [("claude", ""), ("gemini", "{}\n")] {
        let place = Place::new();
        place.write("a", "1");
        let owner = Owner::of(&place);
        let payload = serde_json::json!({
            "session_id": "s", "cwd": place.path("ws"), "prompt": "one",
            "hook_event_name": if agent == "claude" { "UserPromptSubmit" } else { "BeforeAgent" },
        });
        let script = format!("{ALONE} printf '%s' '{payload}' | alone $backtrail hook {agent}");
        let said = owner.runs(&place, &script);
        let (told, answered) = said.split_at(said.len() - answer.len());
        assert_eq!(answered, answer, "{said}");
        assert!(told.starts_with("backtrail: not protected: ") && told.lines().count() == 1, "{said}");
        assert!(owner.runs(&place, "$backtrail doctor || true").contains("no process can be started"));
    }
}

/// A save without threads was an internal error.
#[test]
fn everything_can_be_done_on_one_thread() {
    let place = Place::new();
    let owner = Owner::of(&place);
    let write =
        |text: &str| format!("for i in {{1..40}}; do mkdir -p d$((i % 10)); echo {text} $i > d$((i % 10))/$i; done; ");
    owner.runs(&place, &(write("one") + ALONE + "alone $backtrail save one"));
    owner.runs(&place, &(write("two") + ALONE + "alone $backtrail save two; alone $backtrail verify"));
    owner.runs(&place, &(write("three") + ALONE + "alone $backtrail status; alone $backtrail restore @~1"));
    assert_eq!(owner.runs(&place, "cat d0/40"), "one 40\n");
    let compared = owner.runs(
        &place,
        &(ALONE.to_owned() + "alone $backtrail diff --stat @ latest; alone $backtrail undo; alone $backtrail prune"),
    );
    assert!(compared.contains("40 files"), "{compared}");
    assert_eq!(owner.runs(&place, "cat d0/40; $backtrail verify >/dev/null"), "three 40\n");
}
