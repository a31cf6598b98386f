//! Reads the requests of the Python half. They are dictionaries; a missing key stands for the default.

use std::path::{Path, PathBuf};

use backtrail::{
    Author, CheckpointId, Context, Error, HunkChoice, Kind, ListFilter, Only, Origin, RestoreRequest, Result,
    SaveRequest, Scope, StepRequest, Workspace, WorkspacePath,
};
use jiff::{Timestamp, Zoned};
use pyo3::{
    exceptions::{PyOverflowError, PyUnicodeError},
    prelude::*,
    types::PyDict,
};
use serde_json::{Map, Value};

use crate::{errors, precision::hunks};

/// A request to save. Its paths are not resolved yet.
pub(crate) struct SaveWords {
    request: SaveRequest,
    include: Vec<PathBuf>,
}

impl SaveWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let session_number: Option<u64> = wanted(words, "session_number")?;
        let token_usage: Option<u64> = wanted(words, "tokens")?;
        let has_context = session_number.is_some() || token_usage.is_some();
        let request = SaveRequest {
            message: wanted(words, "message")?,
            name: wanted(words, "name")?,
            description: wanted(words, "description")?,
            kind: kind(words)?,
            context: has_context.then_some(Context { session_number, token_usage }),
            metadata: metadata(words)?,
            attachments: wanted(words, "attachments")?.unwrap_or_default(),
            allow_empty: wanted(words, "allow_empty")?.unwrap_or_default(),
            if_changed: wanted(words, "if_changed")?.unwrap_or_default(),
            origin: Origin {
                step: wanted(words, "step")?,
                session: wanted(words, "session")?,
                agent: wanted(words, "agent")?,
                turn: wanted(words, "turn")?,
                prompt: wanted(words, "prompt")?,
                tool: wanted(words, "tool")?,
                command: wanted(words, "command")?,
                author: author(words)?,
            },
            ..SaveRequest::default()
        };
        if request.kind == Some(Kind::Safety) {
            return Err(usage(words.py(), "kind can't be safety: only restores take safety checkpoints".to_owned()));
        }
        Ok(Self { request, include: wanted(words, "include")?.unwrap_or_default() })
    }

    pub(crate) fn request(&self, workspace: &Workspace) -> Result<SaveRequest> {
        Ok(SaveRequest { include: all_inside(workspace, &self.include)?, ..self.request.clone() })
    }
}

/// A request to count a step. Its paths are not resolved yet.
pub(crate) struct StepWords {
    request: StepRequest,
    touching: Vec<PathBuf>,
}

impl StepWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let request = StepRequest {
            message: wanted(words, "message")?,
            metadata: metadata(words)?,
            origin: Origin {
                session: wanted(words, "session")?,
                agent: wanted(words, "agent")?,
                turn: wanted(words, "turn")?,
                prompt: wanted(words, "prompt")?,
                tool: wanted(words, "tool")?,
                command: wanted(words, "command")?,
                author: author(words)?,
                step: None,
            },
            ..StepRequest::default()
        };
        Ok(Self { request, touching: wanted(words, "touching")?.unwrap_or_default() })
    }

    pub(crate) fn request(&self, workspace: &Workspace) -> Result<StepRequest> {
        Ok(StepRequest { paths: all_inside(workspace, &self.touching)?, ..self.request.clone() })
    }
}

/// A request to list checkpoints. Its path is not resolved yet.
pub(crate) struct ListWords {
    filter: ListFilter,
    path: Option<PathBuf>,
}

impl ListWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let since: Option<i64> = wanted(words, "since_milliseconds")?;
        let since = since.map(Timestamp::from_millisecond).transpose();
        let filter = ListFilter {
            limit: wanted(words, "limit")?,
            kind: kind(words)?,
            session: wanted(words, "session")?,
            grep: wanted(words, "grep")?,
            since: since.map_err(|error| usage(words.py(), format!("since: {error}")))?,
            hide_safety: wanted(words, "hide_safety")?.unwrap_or_default(),
            ..ListFilter::default()
        };
        Ok(Self { filter, path: wanted(words, "path")? })
    }

    pub(crate) fn filter(&self, workspace: &Workspace) -> Result<ListFilter> {
        let path = self.path.as_deref().map(|path| inside(workspace, path)).transpose()?;
        Ok(ListFilter { path, ..self.filter.clone() })
    }
}

/// A request to restore. Its checkpoint and its paths are not resolved yet.
pub(crate) struct RestoreWords {
    word: String,
    paths: Option<Vec<PathBuf>>,
    only: Only,
    exact: bool,
    skip_conflicts: bool,
    git: bool,
    plan: Option<String>,
    hunks: HunkChoice,
}

impl RestoreWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let only: Option<String> = wanted(words, "only")?;
        Ok(Self {
            word: wanted(words, "word")?.unwrap_or_else(|| "@".to_owned()),
            paths: wanted(words, "paths")?,
            only: match only.as_deref() {
                None | Some("all") => Only::All,
                Some("files") => Only::Files,
                Some("state") => Only::State,
                Some(other) => {
                    return Err(usage(words.py(), format!("only must be all, files or state, not {other:?}")));
                }
            },
            exact: wanted(words, "exact")?.unwrap_or_default(),
            skip_conflicts: wanted(words, "skip_conflicts")?.unwrap_or_default(),
            git: wanted(words, "git")?.unwrap_or_default(),
            plan: wanted(words, "plan")?,
            hunks: hunks(words)?,
        })
    }

    pub(crate) fn request(&self, workspace: &Workspace) -> Result<RestoreRequest> {
        Ok(RestoreRequest {
            scope: scope(workspace, self.paths.as_deref())?,
            only: self.only,
            exact: self.exact,
            skip_conflicts: self.skip_conflicts,
            git: self.git,
            plan: self.plan.clone(),
            hunks: self.hunks.clone(),
            ..RestoreRequest::whole(resolve(workspace, &self.word)?)
        })
    }
}

/// Reads an optional value.
pub(crate) fn wanted<'py, T>(words: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    match words.get_item(key)? {
        Some(value) if !value.is_none() => match value.extract::<T>() {
            Ok(value) => Ok(Some(value)),
            Err(problem) => Err(named(words.py(), key, &problem.into())),
        },
        _ => Ok(None),
    }
}

/// Puts the name of the argument in front of the message. A value of the right type that is invalid is a usage error: a
/// negative number, or text with a lone surrogate.
fn named(py: Python<'_>, key: &str, problem: &PyErr) -> PyErr {
    if problem.is_instance_of::<PyOverflowError>(py) || problem.is_instance_of::<PyUnicodeError>(py) {
        return usage(py, format!("{key}: {}", problem.value(py)));
    }
    PyErr::from_type(problem.get_type(py), format!("{key}: {}", problem.value(py)))
}

/// Reads the kind of checkpoint.
pub(crate) fn kind(words: &Bound<'_, PyDict>) -> PyResult<Option<Kind>> {
    let word: Option<String> = wanted(words, "kind")?;
    word.map(|word| word.parse::<Kind>().map_err(|error| usage(words.py(), error.to_string()))).transpose()
}

fn author(words: &Bound<'_, PyDict>) -> PyResult<Option<Author>> {
    let word: Option<String> = wanted(words, "author")?;
    word.map(|word| word.parse::<Author>().map_err(|error| usage(words.py(), error.to_string()))).transpose()
}

/// Reads the metadata, which is passed as the text of a JSON object.
fn metadata(words: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    let Some(text) = wanted::<String>(words, "metadata")? else { return Ok(Map::new()) };
    match serde_json::from_str(&text) {
        Ok(Value::Object(metadata)) => Ok(metadata),
        Ok(_) => Err(usage(words.py(), "metadata must be a JSON object".to_owned())),
        Err(error) => Err(usage(words.py(), format!("metadata: {error}"))),
    }
}

/// Returns the exception for a call with invalid arguments.
pub(crate) fn usage(py: Python<'_>, message: String) -> PyErr {
    errors::exception(py, &Error::Usage(message))
}

/// Returns the id of the checkpoint that a word names.
pub(crate) fn resolve(workspace: &Workspace, word: &str) -> Result<CheckpointId> {
    workspace.resolve(word, &Zoned::now())
}

/// Resolves a word like [`resolve`], for operations that look up an id by themselves. A full id is returned without a
/// check, so that the timeline is not read twice.
pub(crate) fn id_or_resolve(workspace: &Workspace, word: &str) -> Result<CheckpointId> {
    word.parse().or_else(|_| resolve(workspace, word))
}

/// Resolves a path of the caller. A relative path starts at the workspace, not at the current directory.
pub(crate) fn inside(workspace: &Workspace, path: &Path) -> Result<WorkspacePath> {
    workspace.path_from(workspace.root(), path)
}

fn all_inside(workspace: &Workspace, paths: &[PathBuf]) -> Result<Vec<WorkspacePath>> {
    paths.iter().map(|path| inside(workspace, path)).collect()
}

/// Returns the scope of these paths, or the whole workspace if no paths are given.
pub(crate) fn scope(workspace: &Workspace, paths: Option<&[PathBuf]>) -> Result<Scope> {
    Ok(match paths {
        Some(paths) => Scope::of_paths(all_inside(workspace, paths)?),
        None => Scope::Whole,
    })
}
