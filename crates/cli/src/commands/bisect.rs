//! `bisect`: finds the first checkpoint for which a command fails.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use backtrail::{
    Bisection, Candidate, CheckpointId, Error, Links, RestoreRequest, Scratch, TestResult, Workspace, json::BisectJson,
};
use clap::Args;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::{
    child::{self, Ended, HeldSignals, Limit},
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{candidate_title, culprit_text, shell_words},
    process_pins::HeldPin,
    rollback_point::{Repeat, RolledBack, WayBack},
};

/// Find the first checkpoint for which a command fails
///
/// The command runs in a scratch directory that gets the files of one checkpoint after another; files that it creates
/// there stay, so that builds are quick. Its exit status decides: 0 good, 125 untestable, 1 to 127 bad, above: stop.
/// Both ends are tested first.
#[derive(Debug, Args)]
pub(crate) struct BisectArgs {
    /// A checkpoint for which the command passes; without it the oldest on the line
    #[arg(long, value_name = "ID", value_parser = text())]
    good: Option<String>,
    /// A checkpoint for which the command fails; without it the files on disk
    #[arg(long, value_name = "ID", value_parser = text())]
    bad: Option<String>,
    /// Test in the workspace itself; the files on disk come back at the end
    #[arg(long, conflicts_with = "link")]
    in_place: bool,
    /// Link to this skipped directory of the workspace, or to none; without it to those that a tool can rebuild, such as
    /// node_modules
    #[arg(long, value_name = "NAME", value_parser = text())]
    link: Vec<String>,
    /// The command with its arguments, as they are
    #[arg(value_name = "CMD", last = true, required = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &BisectArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = if args.in_place { invocation.workspace_to_restore()? } else { invocation.workspace_to_scan()? };
    let id = |word: &Option<String>| word.as_ref().map(|word| invocation.checkpoint(&workspace, word)).transpose();
    let mut bisection = workspace.bisection(id(&args.good)?, id(&args.bad)?)?;
    // From here on, a signal ends the command but not this process, so that the files on disk still come back.
    let signals = HeldSignals::hold()?;
    let tests = Tests { args, invocation, workspace: &workspace, signals: &signals };
    let outcome = if args.in_place { tests.in_place(&mut bisection)? } else { tests.in_scratch(&mut bisection)? };
    match outcome {
        BisectOutcome::Finished => tell(&workspace, &bisection, invocation),
        BisectOutcome::NotStarted(sentence) => {
            invocation.output.error(&sentence);
            Ok(ExitCode::from(NOT_STARTED))
        }
    }
}

/// The exit status if the command can't be started.
const NOT_STARTED: u8 = 127;
/// The exit status of a command that can't test a state.
const UNTESTABLE: u8 = 125;
/// The highest exit status that means that the test failed.
const HIGHEST_BAD: u8 = 127;

/// The result of all tests.
enum BisectOutcome {
    Finished,
    /// The command could not be started. Contains the sentence that says so.
    NotStarted(String),
}

/// The parameters of all tests.
struct Tests<'a> {
    args: &'a BisectArgs,
    invocation: &'a Invocation,
    workspace: &'a Workspace,
    signals: &'a HeldSignals,
}

impl Tests<'_> {
    /// Tests in a scratch directory. The workspace is only read.
    fn in_scratch(&self, bisection: &mut Bisection) -> Result<BisectOutcome, Failure> {
        let place = scratch_directory()?;
        let mut scratch = Scratch::new(self.workspace, place.path(), &links(&self.args.link))?;
        let directory = scratch.directory().to_owned();
        self.search(bisection, &directory, &mut |candidate| Ok(scratch.write(self.workspace, candidate)?))
    }

    /// Tests in the workspace. The files on disk come back at the end, also after an error.
    fn in_place(&self, bisection: &mut Bisection) -> Result<BisectOutcome, Failure> {
        let message = format!("before bisect: {}", self.command_text());
        let way_back = WayBack::take(self.workspace, self.invocation, message, Repeat::No)?;
        let on_disk = way_back.checkpoint;
        let note = HeldPin::note_bisect(self.workspace, &on_disk, self.invocation)?;
        self.invocation.output.note("should this be killed, bring back the files with: backtrail recover");
        let root = self.workspace.root().to_owned();
        let outcome = self.search(bisection, &root, &mut |candidate| {
            let target = candidate.checkpoint().unwrap_or(on_disk);
            self.workspace.restore(&RestoreRequest::whole(target), Timestamp::now())?;
            Ok(())
        });
        match way_back.roll_back() {
            RolledBack::Done(_) => note.forget(),
            RolledBack::Failed(failure) => return Err(failure),
        }
        outcome
    }

    fn search(
        &self,
        bisection: &mut Bisection,
        root: &Path,
        write: &mut dyn FnMut(Candidate) -> Result<(), Failure>,
    ) -> Result<BisectOutcome, Failure> {
        while let Some(candidate) = bisection.next_candidate() {
            write(candidate)?;
            let began = Instant::now();
            let ended = child::run(&mut self.command(root), Limit::after(None), self.signals);
            if let Ended::NotStarted(_) = &ended {
                return Ok(BisectOutcome::NotStarted(format!("{} {}", self.program(), ended.describe())));
            }
            let result = self.result(&ended)?;
            bisection.record(result, Some(ended.exit_code()), began.elapsed().as_secs_f64());
            self.note(bisection.tested().len(), candidate, result);
        }
        match bisection.untestable_end() {
            Some((is_first, candidate)) => Err(self.untestable(is_first, candidate)),
            None => Ok(BisectOutcome::Finished),
        }
    }

    fn command(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.args.words[0]);
        command.args(&self.args.words[1..]).current_dir(self.directory_in(root));
        command
    }

    /// Returns the directory in which the user is, as seen from another root. Returns the root if it has no such
    /// directory.
    fn directory_in(&self, root: &Path) -> PathBuf {
        let inside = self.invocation.path(self.workspace, Path::new("."));
        let below = inside.map_or_else(|_| root.to_owned(), |path| root.join(path.to_text().as_ref()));
        if below.is_dir() { below } else { root.to_owned() }
    }

    fn program(&self) -> String {
        self.args.words[0].to_string_lossy().into_owned()
    }

    fn command_text(&self) -> String {
        let words: Vec<_> = self.args.words.iter().map(|word| word.to_string_lossy()).collect();
        shell_words(words.iter().map(|word| &**word))
    }

    /// Returns what a run of the command says about a state. Any exit status above 127 stops the search.
    fn result(&self, ended: &Ended) -> Result<TestResult, Failure> {
        match ended.exit_code() {
            0 => Ok(TestResult::Good),
            UNTESTABLE => Ok(TestResult::Skipped),
            code if code <= HIGHEST_BAD => Ok(TestResult::Bad),
            _ => {
                let source = io::Error::other(format!("it {}; the search was stopped", ended.describe()));
                Err(Error::Io { action: "test with", path: self.program().into(), source }.into())
            }
        }
    }

    fn note(&self, number: usize, candidate: Candidate, result: TestResult) {
        let word = match result {
            TestResult::Good => "good",
            TestResult::Bad => "bad",
            TestResult::Skipped => "can't be tested",
        };
        self.invocation.output.note(&format!("{number}: {} {word}", candidate_title(self.workspace, candidate)));
    }

    fn untestable(&self, is_first: bool, candidate: Candidate) -> Failure {
        let option = if is_first { "--good" } else { "--bad" };
        let title = candidate_title(self.workspace, candidate);
        let hint = format!("name another one with {option} ID");
        Failure::usage(format!("{title} can't be tested (exit {UNTESTABLE}), and the search needs it"), Some(&hint))
    }
}

fn links(names: &[String]) -> Links {
    match names {
        [] => Links::Rebuildable,
        [only] if only == "none" => Links::None,
        names => Links::Named(names.to_vec()),
    }
}

fn scratch_directory() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("backtrail-bisect-").tempdir();
    made.map_err(|source| Error::Io { action: "create", path: std::env::temp_dir(), source }.into())
}

fn tell(workspace: &Workspace, bisection: &Bisection, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let culprit = bisection.culprit();
    let changes = workspace.changes_of_culprit(&culprit)?;
    let output = &invocation.output;
    if output.is_json() {
        // The command's output may end without a line break.
        output.text("\n")?;
        output.json(&BisectJson::new(bisection, &changes))?;
    } else {
        output.text(&culprit_text(workspace, bisection, &changes, output.paint)?)?;
        if let Some(id) = culprit.first_bad.and_then(Candidate::checkpoint) {
            note_revert(workspace, &id, invocation)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the user how to take back the changes of the first bad checkpoint. The oldest one has no changes to take back.
fn note_revert(workspace: &Workspace, id: &CheckpointId, invocation: &Invocation) -> Result<(), Failure> {
    if workspace.get(id)?.parent.is_some() {
        invocation.output.note(&format!("take it back with: backtrail revert {}", id.short()));
    }
    Ok(())
}
