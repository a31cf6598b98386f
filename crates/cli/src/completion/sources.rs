//! The sources of completions: the timeline, and directories of a checkpoint.

use std::ffi::OsStr;

use backtrail::{CheckpointId, ListFilter, Workspace};
use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use jiff::Zoned;

use super::candidate;
use crate::{
    cli::Cli,
    invocation::Invocation,
    output::{title_words, visible, visible_path, when},
};

/// The maximum number of checkpoints that are offered before the first letter.
const OFFERED: usize = 50;

/// The values that an argument takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Offer {
    /// Words that name a checkpoint.
    Checkpoints,
    /// Words that name a checkpoint, and paths after two dashes.
    CheckpointsBeforeDashes,
    /// Pinned checkpoints.
    Pinned,
    /// Paths of the checkpoint on the command line, or else of the one that the workspace stands on.
    Paths,
    /// Attachments of that checkpoint.
    Attachments,
    /// Sessions of agents.
    Sessions,
    /// Stores whose directory does not exist.
    Stores,
    /// Commands of this program.
    Commands,
}

/// The parts of a workspace that completion needs.
pub(super) struct Sources {
    place: Option<Place>,
    /// The word for a checkpoint on the command line.
    checkpoint: Option<String>,
    is_behind_dashes: bool,
    stores: Option<std::path::PathBuf>,
    now: Zoned,
}

struct Place {
    workspace: Workspace,
    current_directory: std::path::PathBuf,
}

impl Sources {
    pub(super) fn new(invocation: &Invocation, checkpoint: Option<String>, is_behind_dashes: bool) -> Self {
        let current_directory = invocation.file(std::path::Path::new("")).ok();
        let workspace = invocation.survey().ok().map(|survey| survey.workspace);
        let place = workspace
            .zip(current_directory)
            .map(|(workspace, current_directory)| Place { workspace, current_directory });
        let stores = invocation.stores().ok();
        Self { place, checkpoint, is_behind_dashes, stores, now: Zoned::clone(&invocation.now) }
    }

    /// Returns the completions of a word. Returns none on errors.
    pub(super) fn offer(&self, offer: Offer, typed: &OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let found = match offer {
            Offer::CheckpointsBeforeDashes if self.is_behind_dashes => self.paths(typed),
            Offer::Checkpoints | Offer::CheckpointsBeforeDashes => self.checkpoints(typed),
            Offer::Pinned => self.pinned(typed),
            Offer::Paths => self.paths(typed),
            Offer::Attachments => self.attachments(typed),
            Offer::Sessions => self.sessions(typed),
            Offer::Stores => self.stores(typed),
            Offer::Commands => Some(commands(typed)),
        };
        found.unwrap_or_default()
    }

    fn workspace(&self) -> Option<&Workspace> {
        self.place.as_ref().map(|place| &place.workspace)
    }

    fn checkpoints(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        if let Some(rest) = typed.strip_prefix("before:") {
            let found = self.checkpoints(rest)?;
            return Some(found.into_iter().map(|candidate| candidate.add_prefix("before:")).collect());
        }
        if let Some((from, to)) = typed.split_once("..").filter(|(from, _)| !from.is_empty()) {
            let found = self.checkpoints(to)?;
            return Some(found.into_iter().map(|candidate| candidate.add_prefix(format!("{from}.."))).collect());
        }
        let mut found = self.words(typed)?;
        found.extend(self.turns(typed)?);
        found.extend(self.names(typed)?);
        found.extend(self.ids(typed, |_| true)?);
        Some(found)
    }

    /// Returns the ids with this prefix, newest first, each with its time and message.
    fn ids(&self, typed: &str, fits: impl Fn(&backtrail::Checkpoint) -> bool) -> Option<Vec<CompletionCandidate>> {
        let is_start = typed.is_empty();
        let filter = ListFilter { limit: is_start.then_some(OFFERED), hide_safety: is_start, ..ListFilter::default() };
        let all = self.workspace()?.list(&filter).ok()?;
        let fitting = all.iter().filter(|checkpoint| fits(checkpoint) && checkpoint.id.to_string().starts_with(typed));
        let offered = fitting.map(|checkpoint| {
            let (short, full) = (checkpoint.id.short(), checkpoint.id.to_string());
            let id = if short.starts_with(typed) { short } else { full };
            candidate(id, format!("{}  {}", when(checkpoint.time, &self.now), title_words(checkpoint)))
        });
        Some(offered.collect())
    }

    fn names(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        // Before the first letter, the ids are enough.
        if typed.is_empty() {
            return Some(Vec::new());
        }
        let all = self.workspace()?.list(&ListFilter { hide_safety: true, ..ListFilter::default() }).ok()?;
        let mut found: Vec<CompletionCandidate> = Vec::new();
        for checkpoint in &all {
            let Some(name) = checkpoint.name.as_deref().filter(|name| name.starts_with(typed)) else { continue };
            // A name means its newest checkpoint. A checkpoint whose name contains control characters is offered by its
            // id.
            if visible(name) == name && !found.iter().any(|known| known.get_value() == name) {
                found.push(candidate(name, format!("{}  {}", when(checkpoint.time, &self.now), checkpoint.id.short())));
            }
        }
        Some(found)
    }

    /// Returns the words that are relative to the checkpoint that the workspace stands on.
    fn words(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        let workspace = self.workspace()?;
        let steps: &[&str] = if typed.starts_with("@~") { &["@~1", "@~2", "@~3", "@~4", "@~5"] } else { &["@"] };
        let fitting = steps.iter().chain(&["latest"]).filter(|word| word.starts_with(typed));
        let offered = fitting.map_while(|word| {
            let id = workspace.resolve(word, &self.now).ok()?;
            let checkpoint = workspace.get(&id).ok()?;
            Some(candidate(*word, format!("{}  {}", when(checkpoint.time, &self.now), title_words(&checkpoint))))
        });
        Some(offered.collect())
    }

    /// Returns the prompts of the session that worked here last, newest first.
    fn turns(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        // Before the first letter, the ids are enough.
        if typed.is_empty() || !(typed.starts_with("turn:") || "turn:".starts_with(typed)) {
            return Some(Vec::new());
        }
        let workspace = self.workspace()?;
        let prompts = workspace.list(&ListFilter { turns: true, brief: true, ..ListFilter::default() }).ok()?;
        let offered = prompts.iter().filter_map(|prompt| {
            let word = format!("turn:{}", prompt.origin.turn?);
            // The same number in another session, or on another line, is another prompt.
            let is_meant = word.starts_with(typed) && workspace.resolve(&word, &self.now).ok() == Some(prompt.id);
            is_meant.then(|| candidate(word, format!("{}  {}", when(prompt.time, &self.now), title_words(prompt))))
        });
        Some(offered.take(OFFERED).collect())
    }

    fn pinned(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        self.ids(typed, |checkpoint| checkpoint.pinned)
    }

    /// Returns the checkpoint on the command line, or else the one that the workspace stands on.
    fn meant(&self) -> Option<CheckpointId> {
        let workspace = self.workspace()?;
        match &self.checkpoint {
            Some(word) => workspace.resolve(word, &self.now).ok(),
            None => workspace.current().ok()?,
        }
    }

    /// Returns the names in the typed directory, as they were at the checkpoint that is meant.
    fn paths(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        let place = self.place.as_ref()?;
        let (above, start) =
            typed.rsplit_once('/').map_or(("", typed), |(above, start)| (&typed[..above.len() + 1], start));
        let directory = place.workspace.path_from(&place.current_directory, std::path::Path::new(above)).ok()?;
        let names = place.workspace.names_at(&self.meant()?, &directory).ok()?;
        let fitting = names.iter().filter_map(|entry| {
            let name = std::str::from_utf8(&entry.name).ok().filter(|name| name.starts_with(start))?;
            let slash = if entry.is_directory { "/" } else { "" };
            // A name with control characters can't be offered as it is.
            (visible(name) == *name).then(|| CompletionCandidate::new(format!("{above}{name}{slash}")))
        });
        Some(fitting.collect())
    }

    fn attachments(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        let attachments = self.workspace()?.get(&self.meant()?).ok()?.attachments;
        let fitting = attachments.into_iter().filter(|attachment| attachment.name.starts_with(typed));
        Some(fitting.map(|attachment| CompletionCandidate::new(attachment.name)).collect())
    }

    /// Returns the names of stores that a directory may adopt, each with the former path of its own directory.
    fn stores(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        let without_directory = backtrail::workspaces(self.stores.as_ref()?).ok()?.into_iter().filter(|it| !it.exists);
        let named = without_directory.filter_map(|entry| {
            let name = entry.store.file_name()?.to_str().filter(|name| name.starts_with(typed))?.to_owned();
            Some(candidate(name, visible_path(&entry.path)))
        });
        Some(named.collect())
    }

    fn sessions(&self, typed: &str) -> Option<Vec<CompletionCandidate>> {
        let mut found: Vec<CompletionCandidate> = Vec::new();
        for checkpoint in self.workspace()?.list(&ListFilter::default()).ok()? {
            let Some(session) = checkpoint.origin.session.as_deref().filter(|session| session.starts_with(typed))
            else {
                continue;
            };
            if !found.iter().any(|known| known.get_value() == session) {
                found.push(candidate(
                    session,
                    format!("{}  {}", when(checkpoint.time, &self.now), title_words(&checkpoint)),
                ));
            }
        }
        Some(found)
    }
}

fn commands(typed: &str) -> Vec<CompletionCandidate> {
    let program = Cli::command();
    let fitting =
        program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name().starts_with(typed));
    fitting
        .map(|command| candidate(command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect()
}
