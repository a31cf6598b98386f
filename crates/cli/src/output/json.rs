//! JSON answers that only this program gives. All others are in the library.

use std::{io, path::Path};

use backtrail::{Damage, Verification};
use serde::Serialize;

use super::OutputError;

/// Returns an answer as one line of JSON.
pub(crate) fn json_line(answer: &impl Serialize) -> Result<String, OutputError> {
    let mut text = serde_json::to_string(answer).map_err(io::Error::from)?;
    text.push('\n');
    Ok(text)
}

/// The JSON answer of `init`.
#[derive(Serialize)]
pub(crate) struct InitJson {
    workspace: String,
    store: String,
    created: bool,
}

impl InitJson {
    pub(crate) fn new(workspace: &Path, store: &Path, created: bool) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self { workspace: text(workspace), store: text(store), created }
    }
}

/// The JSON answer of `ui`, as soon as the page is served.
#[derive(Serialize)]
pub(crate) struct UiJson<'a> {
    url: &'a str,
    port: u16,
    pid: u32,
}

impl<'a> UiJson<'a> {
    pub(crate) fn new(url: &'a str, port: u16) -> Self {
        Self { url, port, pid: std::process::id() }
    }
}

/// The JSON answer of `verify`.
#[derive(Serialize)]
pub(crate) struct VerifyJson<'a> {
    ok: bool,
    checkpoints: usize,
    damaged: Vec<DamageJson<'a>>,
}

#[derive(Serialize)]
struct DamageJson<'a> {
    id: &'a str,
    reason: &'a str,
}

impl<'a> From<&'a Verification> for VerifyJson<'a> {
    fn from(found: &'a Verification) -> Self {
        let damage = |damage: &'a Damage| DamageJson { id: &damage.id, reason: &damage.reason };
        Self {
            ok: found.damaged.is_empty(),
            checkpoints: found.checkpoints,
            damaged: found.damaged.iter().map(damage).collect(),
        }
    }
}
