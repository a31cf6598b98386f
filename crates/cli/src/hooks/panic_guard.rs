//! The answer that an agent gets if the hook panics.

use std::{panic, process};

use jiff::Timestamp;

use super::{
    Agent,
    log::{Line, Log, Sort},
};
use crate::output;

/// Installs a panic hook that reports the panic and ends this process with success: any other exit status may stop a
/// prompt or a tool. `catch_unwind` would not help, because a panic aborts the process in an optimized build.
pub(super) fn prepare(agent_word: &str, log: Option<Log>) {
    let agent_word = agent_word.to_owned();
    panic::set_hook(Box::new(move |panic| {
        let message = format!("no checkpoint was taken: {}", panic.to_string().replace('\n', " "));
        if let Some(log) = &log {
            log.add(&line(&agent_word, message.clone()));
        }
        output::talk_of_hook(&format!("backtrail: not protected: {message}"));
        if agent_word.parse::<Agent>().is_ok_and(Agent::wants_json) {
            output::answer_hook("{}\n");
        }
        #[expect(clippy::exit, reason = "there is nowhere to return to")]
        process::exit(0);
    }));
}

fn line(agent_word: &str, message: String) -> Line {
    Line {
        time: Timestamp::now(),
        sort: Sort::Problem,
        agent: agent_word.chars().take(40).collect(),
        event: String::new(),
        session: None,
        workspace: None,
        message,
        process: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    const PLACE: &str = "BACKTRAIL_TEST_LAST_WORD";

    /// Runs in a process of its own, because it ends that process.
    #[test]
    fn alone() {
        let Some(place) = std::env::var_os(PLACE) else { return };
        prepare("gemini", Some(Log::in_directory(Path::new(&place))));
        panic!("something\nbroke");
    }

    #[test]
    fn a_panic_is_told_and_the_agent_gets_its_answer() {
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["hooks::panic_guard::tests::alone", "--exact", "--nocapture"]).env(PLACE, place.path());
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(String::from_utf8_lossy(&done.stdout).ends_with("{}\n"), "{done:?}");
        assert!(said.contains("backtrail: not protected: ") && said.contains("something broke"), "{said}");
        let lines = Log::in_directory(place.path()).lines();
        assert!(matches!(&lines[..], [line] if line.agent == "gemini" && line.message.contains("something broke")));
    }
}
