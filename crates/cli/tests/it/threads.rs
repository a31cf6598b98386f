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
