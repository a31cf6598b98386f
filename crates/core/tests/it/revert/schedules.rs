//! Two sessions and a person in one workspace, in random order: a revert of one session or prompt never changes a line
//! that only somebody else wrote.
//!
//! Every line that is written names its author. So the expected result needs no merge: after a revert, the lines of all
//! others are there as before, in the same order.

use std::collections::BTreeSet;

use backtrail::{
    Author, CheckpointId, Kind, OnConflict, Origin, RevertRequest, RevertTarget, SaveRequest, StepRequest,
};
use backtrail_testkit::{Random, TestWorkspace, is_long};

const FILES: [&str; 3] = ["a", "b", "dir/c"];
const SESSIONS: [&str; 2] = ["one", "two"];

/// A prompt of a session, or the person.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Writer {
    Prompt(usize, u64),
    Person,
}

/// A line: a number that no other line has, and its writer. The lines of the start have none.
type Line = (u64, Option<Writer>);

/// A session's part in a schedule.
#[derive(Default)]
struct Session {
    turn: u64,
    /// The file that the running call names. `None` if no call is running.
    call: Option<usize>,
    prompts: Vec<CheckpointId>,
}

struct Schedule {
    ws: TestWorkspace,
    random: Random,
    files: Vec<Vec<Line>>,
    next: u64,
    sessions: [Session; 2],
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let ws = TestWorkspace::new();
        let mut schedule = Self {
            ws,
            random: Random::new(seed),
            files: vec![Vec::new(); FILES.len()],
            next: 0,
            sessions: Default::default(),
        };
        for file in 0..FILES.len() {
            schedule.files[file] = (0..20).map(|_| schedule.line(None)).collect();
            schedule.write(file);
        }
        schedule.ws.save();
        schedule
    }

    fn line(&mut self, writer: Option<Writer>) -> Line {
        self.next += 1;
        (self.next, writer)
    }

    fn write(&self, file: usize) {
        self.ws.write(FILES[file], text(&self.files[file]));
    }

    /// Inserts lines, or replaces or removes lines of the start or of the writer.
    fn edit(&mut self, file: usize, writer: &Writer) {
        let at = self.random.below(self.files[file].len() + 1);
        let is_free = |line: &Line| line.1.is_none() || line.1.as_ref() == Some(writer);
        let replaces = self.random.chance(40) && self.files[file].get(at).is_some_and(is_free);
        if replaces {
            self.files[file].remove(at);
        }
        for _ in 0..=self.random.below(2) {
            let line = self.line(Some(writer.clone()));
            self.files[file].insert(at, line);
        }
        self.write(file);
    }

    fn origin(&self, session: usize, author: Author) -> Origin {
        let turn = Some(self.sessions[session].turn);
        Origin { session: Some(SESSIONS[session].into()), turn, author: Some(author), ..Origin::default() }
    }

    fn step(&self, session: usize, file: usize, author: Author) -> StepRequest {
        StepRequest {
            origin: self.origin(session, author),
            call: Some(format!("call of {session}")),
            paths: vec![self.ws.workspace_path(FILES[file])],
            ..StepRequest::default()
        }
    }

    fn prompt(&mut self, session: usize) {
        self.sessions[session].turn += 1;
        let origin = self.origin(session, Author::Other);
        let request = SaveRequest { kind: Some(Kind::Turn), allow_empty: true, origin, ..SaveRequest::default() };
        let id = self.ws.save_with(&request).checkpoint.id;
        self.sessions[session].prompts.push(id);
    }

    fn advance(&mut self) {
        let session = self.random.below(2);
        match (self.sessions[session].call, self.random.below(10)) {
            (None, 0..2) => self.prompt(session),
            (None, 2..6) if self.sessions[session].turn > 0 => {
                // Two calls on one file at the same time can't be told apart: the file is shared then.
                let file = self.random.below(FILES.len());
                self.ws.open().step(&self.step(session, file, Author::Other), self.ws.now()).unwrap();
                self.sessions[session].call = Some(file);
            }
            (Some(file), 0..6) => {
                let writer = Writer::Prompt(session, self.sessions[session].turn);
                self.edit(file, &writer);
            }
            (Some(file), 6..9) => {
                self.ws.open().step_done(&self.step(session, file, Author::Agent), self.ws.now()).unwrap();
                self.sessions[session].call = None;
            }
            _ => self.edit_by_hand(),
        }
    }

    /// A person's edit while one call is running, or of a file that a running call names, can't be told from the call's
    /// work. If calls of both sessions are running, any other file is shared.
    fn edit_by_hand(&mut self) {
        let file = self.random.below(FILES.len());
        let running: Vec<usize> = self.sessions.iter().filter_map(|session| session.call).collect();
        if running.len() != 1 && !running.contains(&file) {
            self.edit(file, &Writer::Person);
        }
    }

    fn finish(&mut self) {
        for session in 0..2 {
            if let Some(file) = self.sessions[session].call.take() {
                self.ws.open().step_done(&self.step(session, file, Author::Agent), self.ws.now()).unwrap();
            }
        }
    }

    /// Takes back a session or a prompt, checks the lines on disk, and undoes it.
    fn check(&self, target: &RevertTarget, is_wanted: impl Fn(&Writer) -> bool, what: &str) -> Outcome {
        let request = RevertRequest::whole(target.clone());
        let before = self.read();
        let mut outcome = Outcome::default();
        let plan = self.ws.open().plan_revert(&request).unwrap();
        let conflicts: BTreeSet<String> = plan.conflicts().iter().map(|conflict| conflict.path.to_string()).collect();
        if !conflicts.is_empty() {
            assert!(self.ws.open().revert(&request, self.ws.now()).is_err(), "{what}: a conflict must refuse it");
            assert_eq!(self.read(), before, "{what}: a refused revert changed something");
            outcome.conflicts = conflicts.len();
        }
        let request = RevertRequest { on_conflict: OnConflict::Skip, ..request };
        let done = self.ws.open().revert(&request, self.ws.now()).unwrap();
        let after = self.read();
        for (file, lines) in self.files.iter().enumerate() {
            let name = FILES[file];
            if conflicts.contains(name) {
                assert_eq!(after[file], before[file], "{what}: {name} has a conflict and was changed");
                continue;
            }
            let mine = |line: &&Line| line.1.as_ref().is_some_and(&is_wanted);
            let others: Vec<&Line> = lines.iter().filter(|line| !mine(line)).collect();
            let kept = numbers(&after[file]);
            let kept_of_others: Vec<u64> =
                kept.iter().copied().filter(|number| others.iter().any(|line| line.0 == *number)).collect();
            let expected: Vec<u64> = others.iter().map(|line| line.0).collect();
            assert_eq!(kept_of_others, expected, "{what}: {name} lost or moved a line of somebody else");
            if done.shared.contains(&self.ws.workspace_path(name)) {
                outcome.shared += 1;
            } else {
                let stays = lines.iter().filter(mine).find(|line| kept.contains(&line.0));
                assert_eq!(stays, None, "{what}: {name} still has a line that was taken back");
            }
            outcome.merged += usize::from(after[file] != before[file]);
        }
        if done.restore.applied {
            self.ws.open().undo(self.ws.now()).unwrap();
        }
        assert_eq!(self.read(), before, "{what}: undo");
        outcome
    }

    fn read(&self) -> Vec<Vec<u8>> {
        FILES.iter().map(|name| self.ws.read(name).unwrap()).collect()
    }
}

#[derive(Default)]
struct Outcome {
    conflicts: usize,
    shared: usize,
    merged: usize,
}

fn text(lines: &[Line]) -> String {
    let line = |(number, writer): &Line| match writer {
        None => format!("{number} start\n"),
        Some(writer) => format!("{number} {writer:?}\n"),
    };
    lines.iter().map(line).collect()
}

fn numbers(text: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn run(seed: u64, total: &mut Outcome) {
    let mut schedule = Schedule::new(seed);
    for _ in 0..25 + schedule.random.below(25) {
        schedule.advance();
    }
    schedule.finish();
    for (session, name) in SESSIONS.iter().enumerate() {
        let Session { turn, prompts, .. } = &schedule.sessions[session];
        if *turn == 0 {
            continue;
        }
        let of_session = |writer: &Writer| matches!(writer, Writer::Prompt(of, _) if *of == session);
        let mut add = |outcome: Outcome| {
            total.conflicts += outcome.conflicts;
            total.shared += outcome.shared;
            total.merged += outcome.merged;
        };
        let what = format!("seed {seed}, session {name}");
        add(schedule.check(&RevertTarget::Session((*name).to_owned()), of_session, &what));
        for (number, prompt) in (1..).zip(prompts) {
            let is_wanted = |writer: &Writer| *writer == Writer::Prompt(session, number);
            add(schedule.check(&RevertTarget::Checkpoint(*prompt), is_wanted, &format!("{what}, prompt {number}")));
        }
    }
}

#[test]
fn a_revert_never_changes_a_line_that_somebody_else_wrote() {
    let schedules = if is_long() { 1_000 } else { 25 };
    let mut total = Outcome::default();
    for seed in 1..=schedules {
        run(seed, &mut total);
    }
    let Outcome { conflicts, shared, merged } = total;
    println!("{schedules} schedules: {merged} files merged, {shared} shared, {conflicts} conflicts");
    assert!(merged > 20 && shared > 0 && conflicts > 0, "the schedules must reach all cases");
}
