//! The requests that read the timeline: checkpoints, prompts, status, history and blame.

use backtrail::{
    Checkpoint, CheckpointId, Kind, ListFilter, Workspace,
    json::{BlameJson, BlameRangeJson, SkippedJson, VersionJson},
};
use serde::Serialize;

use super::{answers::Reply, desk::Desk, query::Query};
use crate::{
    access::{self, Purpose, limited},
    answers::{self, BoundedCheckpoint, Detail, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

const USUAL_CHECKPOINTS: usize = 100;
const MAX_CHECKPOINTS: usize = 500;
const USUAL_TURNS: usize = 20;
const MAX_TURNS: usize = 50;
const MAX_CHANGES: usize = 2_000;
const MAX_VERSIONS: usize = 2_000;
const MAX_RANGES: usize = 20_000;
const MAX_WORD_BYTES: usize = 1_000;

/// A checkpoint in the list.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    checkpoint: BoundedCheckpoint,
    /// The nearest checkpoint before it that still exists.
    nearest_parent: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    checkpoints: Vec<Row>,
    next: Option<String>,
    current: Option<String>,
}

pub(super) fn checkpoints(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let limit = query.count("limit", USUAL_CHECKPOINTS, MAX_CHECKPOINTS)?;
    for name in ["session", "grep"] {
        limited(name, query.get(name).unwrap_or_default(), MAX_WORD_BYTES)?;
    }
    let (workspace, _) = desk.open(Purpose::Look, call)?;
    let filter = ListFilter {
        // One more than the limit, to find out whether there is a next page.
        limit: Some(limit + 1),
        kind: query.get("kind").map(|kind| kind.parse::<Kind>()).transpose().map_err(usage)?,
        session: query.get("session").map(str::to_owned),
        path: query.get("path").map(|path| access::path(&workspace, path)).transpose()?,
        grep: query.get("grep").map(str::to_owned),
        since: query.get("since").map(|text| access::moment(text, &call.now)).transpose()?,
        before_sequence: query.number("cursor")?,
        brief: true,
        ..ListFilter::default()
    };
    let mut found = workspace.list(&filter)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| last.sequence.to_string());
    let parents = workspace.nearest_parents(&found)?;
    let rows = found.iter().zip(parents).map(|(checkpoint, parent)| Row {
        checkpoint: BoundedCheckpoint::new(checkpoint, Detail::InList),
        nearest_parent: parent.map(|id| id.to_string()),
    });
    let current = workspace.current()?.map(|id| id.to_string());
    Reply::json(&Listed { checkpoints: rows.collect(), next, current })
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

#[derive(Serialize)]
struct Prompts {
    sessions: Vec<Session>,
    next: Option<String>,
}

#[derive(Serialize)]
struct Session {
    session: Option<String>,
    agent: Option<String>,
    turns: Vec<Turn>,
}

#[derive(Serialize)]
struct Turn {
    checkpoint: BoundedCheckpoint,
    steps: Vec<BoundedCheckpoint>,
    changes: Vec<ShownChange>,
    changes_total: u64,
    truncated: Vec<String>,
}

pub(super) fn turns(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let limit = query.count("limit", USUAL_TURNS, MAX_TURNS)?;
    let (workspace, precious) = desk.open(Purpose::Look, call)?;
    let before_sequence = query.number("cursor")?;
    let of_kind = |kind, limit, before_sequence| {
        workspace.list(&ListFilter { kind: Some(kind), limit, before_sequence, brief: true, ..ListFilter::default() })
    };
    let mut found = of_kind(Kind::Turn, Some(limit + 1), before_sequence)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let steps = of_kind(Kind::Step, None, None)?;
    let mut sessions: Vec<Session> = Vec::new();
    for given in &found {
        let is_own = |step: &&Checkpoint| {
            given.origin.turn.is_some()
                && (&step.origin.session, step.origin.turn) == (&given.origin.session, given.origin.turn)
        };
        let changes = workspace.turn_changes(&given.id)?.unwrap_or_default();
        let mut notes = Notes::default();
        let turn = Turn {
            checkpoint: BoundedCheckpoint::new(given, Detail::InList),
            steps: steps.iter().filter(is_own).map(|step| BoundedCheckpoint::new(step, Detail::InList)).collect(),
            changes: answers::changes(&changes, MAX_CHANGES, &precious, &mut notes),
            changes_total: changes.len() as u64,
            truncated: notes.into_inner(),
        };
        match sessions.last_mut().filter(|last| last.session == given.origin.session) {
            Some(session) => session.turns.push(turn),
            None => sessions.push(Session {
                session: given.origin.session.clone(),
                agent: given.origin.agent.clone(),
                turns: vec![turn],
            }),
        }
    }
    let next = found.last().filter(|_| has_more).map(|last| last.sequence.to_string());
    Reply::json(&Prompts { sessions, next })
}

#[derive(Serialize)]
struct Shown {
    checkpoint: BoundedCheckpoint,
    changes: Vec<ShownChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_changes: Option<Vec<ShownChange>>,
    truncated: Vec<String>,
}

/// Shows one checkpoint.
pub(super) fn checkpoint(desk: &Desk, call: &Call, word: &str) -> Result<Reply, Failure> {
    let word = percent_encoding::percent_decode_str(word).decode_utf8().map_err(usage)?;
    let (workspace, precious) = desk.open(Purpose::Look, call)?;
    let shown = workspace.show(&access::checkpoint(&workspace, &word, &call.now)?)?;
    let mut notes = Notes::default();
    Reply::json(&Shown {
        checkpoint: BoundedCheckpoint::new(&shown.checkpoint, Detail::Full),
        changes: answers::changes(&shown.changes, MAX_CHANGES, &precious, &mut notes),
        turn_changes: shown.turn_changes.map(|changes| answers::changes(&changes, MAX_CHANGES, &precious, &mut notes)),
        truncated: notes.into_inner(),
    })
}

#[derive(Serialize)]
struct Status {
    checkpoint: Option<BoundedCheckpoint>,
    changes: Vec<ShownChange>,
    skipped: Vec<SkippedJson>,
    changes_total: u64,
    truncated: Vec<String>,
}

pub(super) fn status(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, precious) = desk.open(Purpose::Scan, call)?;
    let status = workspace.status(query.checkpoint("since", &workspace, &call.now)?)?;
    let mut notes = Notes::default();
    Reply::json(&Status {
        checkpoint: status.checkpoint.as_ref().map(|found| BoundedCheckpoint::new(found, Detail::InList)),
        changes: answers::changes(&status.changes, MAX_CHANGES, &precious, &mut notes),
        skipped: answers::skipped("skipped", &status.uncaptured, &mut notes),
        changes_total: status.changes.len() as u64,
        truncated: notes.into_inner(),
    })
}

#[derive(Serialize)]
struct History {
    path: String,
    versions: Vec<VersionJson>,
    hidden: bool,
    truncated: Vec<String>,
}

pub(super) fn history(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, precious) = desk.open(Purpose::Look, call)?;
    let path = access::path(&workspace, query.required("path")?)?;
    let found = workspace.history(&path)?;
    let hidden = precious.contains(&path);
    let mut notes = Notes::default();
    let mut versions: Vec<VersionJson> = found.iter().map(VersionJson::from).collect();
    notes.cut_list("versions", &mut versions, MAX_VERSIONS, |_| 0);
    if hidden {
        for version in &mut versions {
            (version.bytes, version.insertions, version.deletions, version.binary) = (None, 0, 0, false);
        }
    }
    Reply::json(&History { path: path.to_text().into_owned(), versions, hidden, truncated: notes.into_inner() })
}

#[derive(Serialize)]
struct Blame {
    path: String,
    at: Option<String>,
    ranges: Vec<BlameRangeJson>,
    hidden: bool,
    truncated: Vec<String>,
}

pub(super) fn blame(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, precious) = desk.open(Purpose::Look, call)?;
    let path = access::path(&workspace, query.required("path")?)?;
    let at = query.checkpoint("checkpoint", &workspace, &call.now)?;
    let hidden = precious.contains(&path);
    let mut notes = Notes::default();
    let BlameJson { path: named, at, mut ranges } = BlameJson::from(&workspace.blame(&path, at, None)?);
    if hidden {
        ranges.clear();
    }
    ranges.iter_mut().flat_map(|range| &mut range.prompt).for_each(|prompt| notes.cut_text("prompt", prompt));
    notes.cut_list("ranges", &mut ranges, MAX_RANGES, |_| 0);
    Reply::json(&Blame { path: named, at, ranges, hidden, truncated: notes.into_inner() })
}

/// Returns the checkpoint of the request, or else the one that the workspace stands on.
pub(super) fn named_or_current(
    query: &Query,
    workspace: &Workspace,
    call: &Call,
) -> Result<Option<CheckpointId>, Failure> {
    match query.checkpoint("checkpoint", workspace, &call.now)? {
        Some(named) => Ok(Some(named)),
        None => Ok(workspace.current()?),
    }
}
