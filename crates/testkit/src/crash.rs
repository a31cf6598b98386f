//! The crash driver: runs an operation in a child process that is killed, or fails, at a numbered point.
//!
//! The child is the test binary itself, which runs one of its own tests. Points are counted per process, so that
//! parallel tests do not affect the count.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use backtrail::disk::crash_points::{self, Outcome};

const PLACE: &str = "BACKTRAIL_CRASH_PLACE";
const OPERATION: &str = "BACKTRAIL_CRASH_OPERATION";
const POINT: &str = "BACKTRAIL_CRASH_POINT";
const ERROR: &str = "BACKTRAIL_CRASH_ERROR";
const REPORT: &str = "BACKTRAIL_CRASH_REPORT";

/// The fault that happens at the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed.
    Kill,
    /// The step fails with this error number.
    Error(i32),
}

/// The result of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The operation succeeded.
    Done,
    /// The operation returned an error.
    Failed,
    /// The child was killed at the point.
    Killed,
}

/// The test that children run.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// The full name of the test, such as `crash::child`.
    pub child_test: &'static str,
}

#[expect(clippy::missing_panics_doc, reason = "a test stops if its driver fails")]
impl Driver {
    /// Returns the names of the points that an operation passes, in order.
    pub fn points(&self, place: &Path, operation: &str) -> Vec<String> {
        let report = place.join("points");
        let status = self.command(place, operation).env(REPORT, &report).status();
        assert!(status.is_ok_and(|status| status.success()), "the operation failed without any fault: {operation}");
        let text = std::fs::read_to_string(&report).unwrap_or_else(|error| panic!("no report: {error}"));
        text.lines().map(str::to_owned).collect()
    }

    /// Runs an operation with a fault at a point, counted from 1.
    pub fn run(&self, place: &Path, operation: &str, point: usize, fault: Fault) -> Ended {
        let mut command = self.command(place, operation);
        command.env(POINT, point.to_string());
        if let Fault::Error(code) = fault {
            command.env(ERROR, code.to_string());
        }
        let status = command.status().unwrap_or_else(|error| panic!("can't start the child: {error}"));
        ended(status)
    }

    fn command(&self, place: &Path, operation: &str) -> Command {
        let program = std::env::current_exe().unwrap_or_else(|error| panic!("no test binary: {error}"));
        let mut command = Command::new(program);
        command.args([self.child_test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(PLACE, place).env(OPERATION, operation);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn ended(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(9), _) => Ended::Killed,
        (_, Some(0)) => Ended::Done,
        _ => Ended::Failed,
    }
}

/// The body of the child's test. In a child, runs `operate` with the place and the name of the operation. In any other
/// process, does nothing.
///
/// # Panics
///
/// Panics if the operation fails: this is how the parent learns of it.
pub fn child(operate: impl FnOnce(&Path, &str) -> Result<(), String>) {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let operation = std::env::var(OPERATION).unwrap_or_default();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<i64>().ok());
    if let Some(report) = std::env::var_os(REPORT) {
        let (result, passed) = crash_points::record(|| operate(&place, &operation));
        let names: String = passed.iter().map(|(_, name)| format!("{name}\n")).collect();
        std::fs::write(report, names).unwrap_or_else(|error| panic!("can't report: {error}"));
        return result.unwrap_or_else(|error| panic!("{error}"));
    }
    let outcome = number(ERROR).map_or(Outcome::Die, |code| Outcome::Fail(code as i32));
    crash_points::arm(number(POINT).unwrap_or(0) as u64, outcome);
    operate(&place, &operation).unwrap_or_else(|error| panic!("{error}"));
}
