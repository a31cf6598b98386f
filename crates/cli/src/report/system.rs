//! The program and the system that it runs on.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde::Serialize;

use crate::{
    process,
    settings::{Environment, hide_git_variables},
};

/// This program.
#[derive(Debug, Serialize)]
pub(crate) struct ProgramVersion {
    pub(crate) version: &'static str,
    /// `release` or `debug`.
    pub(crate) build: &'static str,
    /// `program`, or `interpreter` if the command runs inside Python.
    pub(crate) started_as: &'static str,
}

impl ProgramVersion {
    pub(crate) fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            started_as: if process::is_inside_another() { "interpreter" } else { "program" },
        }
    }
}

/// The system.
#[derive(Debug, Serialize)]
pub(crate) struct System {
    /// The name and the version of the distribution. `None` if the system does not say.
    pub(crate) distribution: Option<String>,
    pub(crate) kernel: String,
    pub(crate) machine: String,
    /// The version of git. `None` if there is no git.
    pub(crate) git: Option<String>,
}

impl System {
    pub(crate) fn this(environment: &Environment) -> Self {
        let names = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        Self {
            distribution: distribution(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
            kernel: format!("{} {}", text(names.sysname()), text(names.release())),
            machine: text(names.machine()),
            git: git_version(environment),
        }
    }
}

/// Returns the name of the distribution in the text of `os-release`.
fn distribution(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}

fn git_version(environment: &Environment) -> Option<String> {
    if !environment.has_program("git", environment.current_directory().ok()?) {
        return None;
    }
    let mut command = Command::new("git");
    hide_git_variables(&mut command);
    let answer = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    Some(text.trim().trim_start_matches("git version ").to_owned()).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_read_with_or_without_quotes() {
        assert_eq!(distribution("ID=x\nPRETTY_NAME=\"Some Linux 1.2\"\n").as_deref(), Some("Some Linux 1.2"));
        assert_eq!(distribution("PRETTY_NAME=Some\n").as_deref(), Some("Some"));
        assert_eq!((distribution(""), distribution("PRETTY_NAME=\"\"\n")), (None, None));
    }
}
