//! `demo`: a save, an accident and a restore, in a scratch directory of its own.
//!
//! The commands are run by the code that runs them anywhere else; only their environment is made up.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::Error;
use clap::{Args, Parser};
use tempfile::TempDir;

use crate::{cli::Cli, failure::Failure, invocation::Invocation, output::shell_words, settings::Environment};

/// See a save, an accident and a restore
///
/// Everything happens in a scratch directory, which is removed at the end.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

/// One thing that happens on the stage.
enum Step {
    /// Tells what is going on.
    Tell(&'static str),
    /// Puts a file in place.
    Write(&'static str, &'static str),
    /// Deletes a file.
    Delete(&'static str),
    /// Runs a command of this program and shows what it prints.
    Run(&'static [&'static str]),
}

const STEPS: &[Step] = &[
    Step::Tell("A small project:"),
    Step::Write("README.md", "# Greeter\n\nSays hello.\n"),
    Step::Write("src/greet.py", "def greet(name):\n    return f\"Hello, {name}!\"\n"),
    Step::Write("src/config.toml", "language = \"en\"\n"),
    Step::Tell("Before an agent gets to work, one command keeps everything as it is:"),
    Step::Run(&["save", "before the agent"]),
    Step::Tell("The agent has an accident: it empties one file and deletes another."),
    Step::Write("src/greet.py", "# TODO\n"),
    Step::Delete("src/config.toml"),
    Step::Tell("What happened?"),
    Step::Run(&["status"]),
    Step::Tell("Line by line:"),
    Step::Run(&["diff"]),
    Step::Tell("One command brings everything back:"),
    Step::Run(&["restore", "@"]),
    Step::Run(&["cat", "@", "src/config.toml"]),
    Step::Tell("And should that have been a mistake, it can be taken back as well:"),
    Step::Run(&["undo"]),
    Step::Run(&["redo"]),
    Step::Run(&["list", "--all"]),
];

pub(crate) fn run(_: &DemoArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let temporary = std::env::temp_dir();
    let scratch = temporary.canonicalize().and_then(|place| TempDir::with_prefix_in("backtrail-demo-", place));
    let scratch = scratch.map_err(|source| failed("make a directory in", temporary, source))?;
    let stage = Stage { project: scratch.path().join("project"), scratch: scratch.path(), invocation };
    fs::create_dir(&stage.project).map_err(|source| failed("make", &stage.project, source))?;
    for step in STEPS {
        stage.play(step)?;
    }
    let place = scratch.path().to_owned();
    scratch.close().map_err(|source| failed("remove", place, source))?;
    invocation.output.note("the scratch directory is gone; start with: backtrail save");
    Ok(ExitCode::SUCCESS)
}

struct Stage<'a> {
    project: PathBuf,
    scratch: &'a Path,
    invocation: &'a Invocation,
}

impl Stage<'_> {
    fn play(&self, step: &Step) -> Result<(), Failure> {
        let output = &self.invocation.output;
        match step {
            Step::Tell(text) => output.text(&format!("\n{}\n", output.paint.heading(text)))?,
            Step::Write(name, content) => {
                self.write(name, content)?;
                output.text(&format!("  wrote {name}\n"))?;
            }
            Step::Delete(name) => {
                let path = self.project.join(name);
                fs::remove_file(&path).map_err(|source| failed("delete", path, source))?;
                output.text(&format!("  deleted {name}\n"))?;
            }
            Step::Run(words) => self.run(words)?,
        }
        Ok(())
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Failure> {
        let path = self.project.join(name);
        let directory = path.parent().unwrap_or(&self.project);
        fs::create_dir_all(directory).map_err(|source| failed("make", directory, source))?;
        fs::write(&path, content).map_err(|source| failed("write", &path, source))
    }

    fn run(&self, words: &[&str]) -> Result<(), Failure> {
        let output = &self.invocation.output;
        let line = format!("$ backtrail {}", shell_words(words.iter().copied()));
        output.text(&format!("{}\n", output.paint.command(line)))?;
        // Named outright: something around the scratch directory may look like a workspace.
        let place = ["backtrail", "-w", "."];
        let cli = Cli::try_parse_from(place.iter().chain(words)).map_err(|error| Error::Internal(error.to_string()))?;
        let environment = Environment::scratch(self.scratch, self.project.clone());
        self.invocation.elsewhere(cli.options, environment).run(cli.command);
        Ok(())
    }
}

fn failed(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Failure {
    Error::Io { action, path: path.into(), source }.into()
}
