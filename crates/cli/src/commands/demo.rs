//! `demo`: shows a save, an accident and a restore in a scratch directory.
//!
//! The commands are run by the usual code. Only their environment is separate.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::Error;
use clap::{Args, Parser};
use tempfile::TempDir;

use crate::{cli::Cli, failure::Failure, invocation::Invocation, output::shell_words, process, settings::Environment};

/// Show a save, an accident and a restore
///
/// Everything happens in a temporary directory, which is removed at the end.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Kill a restore half-way, and show how it is recovered
    #[arg(long)]
    crash: bool,
}

/// One step of the demo.
enum DemoStep {
    /// Prints an explanation.
    Tell(&'static str),
    /// Writes a file.
    Write(&'static str, &'static str),
    /// Deletes a file.
    Delete(&'static str),
    /// Runs a command of this program and shows its output.
    Run(&'static [&'static str]),
    /// Writes many files with this content.
    WriteMany(&'static str),
    /// Starts a restore in a separate process and kills it half-way.
    KillRestore(&'static str),
    /// Counts the files with each of two contents.
    Count(&'static str, &'static str),
}

/// The number of files: enough that a restore can be killed half-way.
const MANY: usize = 3_000;

const CRASH_STEPS: &[DemoStep] = &[
    DemoStep::Tell("A project with many files, saved twice:"),
    DemoStep::WriteMany("first\n"),
    DemoStep::Run(&["save", "--name", "first"]),
    DemoStep::WriteMany("second\n"),
    DemoStep::Run(&["save", "--name", "second"]),
    DemoStep::Tell("A restore is killed half-way:"),
    DemoStep::KillRestore("first"),
    DemoStep::Count("first\n", "second\n"),
    DemoStep::Tell("The next command that writes finishes it. This command does only that:"),
    DemoStep::Run(&["recover"]),
    DemoStep::Count("first\n", "second\n"),
    DemoStep::Tell("The restore can be taken back like any other:"),
    DemoStep::Run(&["--quiet", "undo"]),
    DemoStep::Count("first\n", "second\n"),
    DemoStep::Run(&["verify"]),
];

const STEPS: &[DemoStep] = &[
    DemoStep::Tell("A small project:"),
    DemoStep::Write("README.md", "# Greeter\n\nSays hello.\n"),
    DemoStep::Write("src/greet.py", "def greet(name):\n    return f\"Hello, {name}!\"\n"),
    DemoStep::Write("src/config.toml", "language = \"en\"\n"),
    DemoStep::Tell("Before an agent starts to work, one command saves everything:"),
    DemoStep::Run(&["save", "before the agent"]),
    DemoStep::Tell("The agent has an accident: it empties one file and deletes another."),
    DemoStep::Write("src/greet.py", "# TODO\n"),
    DemoStep::Delete("src/config.toml"),
    DemoStep::Tell("What happened?"),
    DemoStep::Run(&["status"]),
    DemoStep::Tell("Line by line:"),
    DemoStep::Run(&["diff"]),
    DemoStep::Tell("One command brings everything back:"),
    DemoStep::Run(&["restore", "@"]),
    DemoStep::Run(&["cat", "@", "src/config.toml"]),
    DemoStep::Tell("If that was a mistake, it can be taken back as well:"),
    DemoStep::Run(&["undo"]),
    DemoStep::Run(&["redo"]),
    DemoStep::Run(&["list", "--all"]),
];

pub(crate) fn run(args: &DemoArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let temporary = std::env::temp_dir();
    let scratch = temporary.canonicalize().and_then(|place| TempDir::with_prefix_in("backtrail-demo-", place));
    let scratch = scratch.map_err(|source| failed("create a directory in", temporary, source))?;
    let stage = Stage { project: scratch.path().join("project"), scratch: scratch.path(), invocation };
    fs::create_dir(&stage.project).map_err(|source| failed("create", &stage.project, source))?;
    for step in if args.crash { CRASH_STEPS } else { STEPS } {
        stage.play(step)?;
    }
    let place = scratch.path().to_owned();
    scratch.close().map_err(|source| failed("remove", place, source))?;
    invocation.output.note("the temporary directory was removed; start with: backtrail save");
    Ok(ExitCode::SUCCESS)
}

struct Stage<'a> {
    project: PathBuf,
    scratch: &'a Path,
    invocation: &'a Invocation,
}

impl Stage<'_> {
    fn play(&self, step: &DemoStep) -> Result<(), Failure> {
        let output = &self.invocation.output;
        match step {
            DemoStep::Tell(text) => output.text(&format!("\n{}\n", output.paint.heading(text)))?,
            DemoStep::Write(name, content) => {
                self.write(name, content)?;
                output.text(&format!("  wrote {name}\n"))?;
            }
            DemoStep::Delete(name) => {
                let path = self.project.join(name);
                fs::remove_file(&path).map_err(|source| failed("delete", path, source))?;
                output.text(&format!("  deleted {name}\n"))?;
            }
            DemoStep::Run(words) => self.run(words)?,
            DemoStep::WriteMany(content) => {
                for number in 0..MANY {
                    self.write(&format!("src/{}/file{number}", number % 40), content)?;
                }
                output.text(&format!("  wrote {MANY} files\n"))?;
            }
            DemoStep::KillRestore(name) => self.kill_restore(name)?,
            DemoStep::Count(one, other) => {
                let (ones, others) = (self.count(one)?, self.count(other)?);
                output.text(&format!("  {ones} files contain {one:?}, {others} contain {other:?}\n"))?;
            }
        }
        Ok(())
    }

    /// Starts a restore, waits for its journal, and kills it. The journal shows that it has begun to move files.
    fn kill_restore(&self, name: &str) -> Result<(), Failure> {
        let output = &self.invocation.output;
        output.text(&format!("{}\n", output.paint.command(format!("$ backtrail restore {name} & kill -9 $!"))))?;
        const PROGRAM: &str = "this program";
        let mut command = process::own_command().map_err(|source| failed("find", PROGRAM, source))?;
        command.args(["-w", ".", "--quiet", "restore", name]).current_dir(&self.project);
        Environment::scratch(self.scratch, self.project.clone()).hand_over(&mut command);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().map_err(|source| failed("start", PROGRAM, source))?;
        let stores = Environment::scratch(self.scratch, self.project.clone()).stores(&backtrail::Settings::default())?;
        loop {
            let is_over = child.try_wait().map_err(|source| failed("watch", PROGRAM, source))?.is_some();
            if is_over || has_journal(&stores) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        std::thread::sleep(std::time::Duration::from_millis(8));
        child.kill().and_then(|()| child.wait()).map_err(|source| failed("kill", PROGRAM, source))?;
        Ok(())
    }

    fn count(&self, content: &str) -> Result<usize, Failure> {
        let mut count = 0;
        for number in 0..MANY {
            let path = self.project.join(format!("src/{}/file{number}", number % 40));
            let found = fs::read(&path).map_err(|source| failed("read", &path, source))?;
            count += usize::from(found == content.as_bytes());
        }
        Ok(count)
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Failure> {
        let path = self.project.join(name);
        let directory = path.parent().unwrap_or(&self.project);
        fs::create_dir_all(directory).map_err(|source| failed("create", directory, source))?;
        fs::write(&path, content).map_err(|source| failed("write", &path, source))
    }

    fn run(&self, words: &[&str]) -> Result<(), Failure> {
        let output = &self.invocation.output;
        let line = format!("$ backtrail {}", shell_words(words.iter().copied()));
        output.text(&format!("{}\n", output.paint.command(line)))?;
        // `-w` is needed because a directory around the scratch directory may look like a workspace.
        let place = ["backtrail", "-w", "."];
        let cli = Cli::try_parse_from(place.iter().chain(words)).map_err(|error| Error::Internal(error.to_string()))?;
        let environment = Environment::scratch(self.scratch, self.project.clone());
        self.invocation.elsewhere(cli.options, environment).run(cli.command);
        Ok(())
    }
}

fn has_journal(stores: &Path) -> bool {
    let stores = fs::read_dir(stores).into_iter().flatten().flatten();
    stores.into_iter().any(|store| store.path().join("backtrail/journal").exists())
}

fn failed(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Failure {
    Error::Io { action, path: path.into(), source }.into()
}
