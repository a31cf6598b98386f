//! The system refuses to start threads and processes: commands work on one thread, and hooks do not fail.

use crate::{owners::Owner, place::Place};

/// Defines a shell function that runs a command which can start neither threads nor processes.
const ALONE: &str = "alone() { (ulimit -u 1; exec \"$@\"); }; ";

#[test]
fn a_hook_that_cannot_start_a_process_succeeds_and_reports_it() {
    for (agent, answer) in [("claude", ""), ("gemini", "{}\n")] {
        let place = Place::new();
        place.write("a", "1");
        let owner = Owner::of(&place);
        let payload = serde_json::json!({
            "session_id": "s", "cwd": place.path("ws"), "prompt": "one",
            "hook_event_name": if agent == "claude" { "UserPromptSubmit" } else { "BeforeAgent" },
        });
        let script = format!("{ALONE} printf '%s' '{payload}' | alone $backtrail hook {agent}");
        let output = owner.run(&place, &script);
        let (warning, printed) = output.split_at(output.len() - answer.len());
        assert_eq!(printed, answer, "{output}");
        assert!(warning.starts_with("backtrail: not protected: ") && warning.lines().count() == 1, "{output}");
        assert!(owner.run(&place, "$backtrail doctor || true").contains("no process can be started"));
    }
}

/// Regression: a save that could not start a thread failed with an internal error.
#[test]
fn commands_work_on_one_thread() {
    let place = Place::new();
    let owner = Owner::of(&place);
    let write =
        |text: &str| format!("for i in {{1..40}}; do mkdir -p d$((i % 10)); echo {text} $i > d$((i % 10))/$i; done; ");
    owner.run(&place, &(write("one") + ALONE + "alone $backtrail save one"));
    owner.run(&place, &(write("two") + ALONE + "alone $backtrail save two; alone $backtrail verify"));
    owner.run(&place, &(write("three") + ALONE + "alone $backtrail status; alone $backtrail restore @~1"));
    assert_eq!(owner.run(&place, "cat d0/40"), "one 40\n");
    let compared = owner.run(
        &place,
        &(ALONE.to_owned() + "alone $backtrail diff --stat @ latest; alone $backtrail undo; alone $backtrail prune"),
    );
    assert!(compared.contains("40 files"), "{compared}");
    assert_eq!(owner.run(&place, "cat d0/40; $backtrail verify >/dev/null"), "three 40\n");
}
