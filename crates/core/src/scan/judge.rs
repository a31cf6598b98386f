//! Decides about one path: captured by the rules, captured as an exception, or skipped.

use super::{
    IgnoreRules, RuleVerdict,
    capture_policy::CachedVerdicts,
    directory_kind::DirectoryKind,
    git_directory::is_of_git,
    is_rule_file,
    stat_cache::{CachedDirectory, CachedEntry, CachedNode},
    walk::{Walker, join},
};
use crate::{
    disk::{Dir, FileType},
    model::{Exception, MAX_RULE_BYTES, Node, Reason, Stamp, WorkspacePath},
};

/// The decision about a name.
pub(super) enum Judged {
    Skipped(Reason),
    Captured { kind_below: DirectoryKind, exception: Option<Exception> },
}

impl Walker<'_> {
    /// Returns whether every cached verdict in the directory is still valid.
    pub(super) fn verdicts_stand(&self, path: &[u8], record: &CachedDirectory<'_>) -> bool {
        if !record.has_verdicts() {
            return true;
        }
        let index_is_cached = self.options.policy.index_is_cached(path);
        record.entries().all(|entry| self.verdict_stands(path, &entry, index_is_cached))
    }

    /// Returns whether the verdict about a name is still valid. Checks the names that something other than the rules
    /// could decide about.
    fn verdict_stands(&self, path: &[u8], entry: &CachedEntry<'_>, index_is_cached: bool) -> bool {
        let policy = self.options.policy;
        let path = || join(path, entry.name.to_bytes());
        match (entry.exception, &entry.node) {
            (Some(Exception::Held), _) => policy.cached_verdicts() != CachedVerdicts::Stale,
            (Some(Exception::Tracked), _) => index_is_cached || policy.is_tracked(&path()),
            (None, CachedNode::Skipped(Reason::Ignored | Reason::Rebuildable, _)) => {
                (index_is_cached || !policy.is_tracked(&path()))
                    && (policy.cached_verdicts() == CachedVerdicts::Final || !self.is_held(&path()))
            }
            _ => true,
        }
    }

    /// Marks a file over the size limit as captured because a checkpoint holds it. Otherwise it would have been
    /// skipped.
    pub(super) fn exception_for_size(
        &self,
        exception: Option<Exception>,
        node: &Node,
        path: &[u8],
    ) -> Option<Exception> {
        match node {
            Node::File(file) if self.is_over_limit(file.stamp.size, path) => exception.or(Some(Exception::Held)),
            _ => exception,
        }
    }

    /// Returns whether a file is larger than the settings allow. The limit does not apply to rule files that are small
    /// enough to be applied.
    pub(super) fn is_over_limit(&self, size: u64, path: &[u8]) -> bool {
        size > self.options.settings.max_file_bytes && !(size <= MAX_RULE_BYTES && is_rule_file(path, false))
    }

    /// Returns whether a checkpoint holds a file at this path that is at least this large.
    pub(super) fn is_held_as_large(&self, size: u64, path: &[u8]) -> bool {
        self.options.policy.held_size(path).is_some_and(|held| held >= size)
    }

    /// Returns whether the stat cache alone proves that no checkpoint that counts holds a name.
    pub(super) fn is_certainly_unheld(&self, cached: Option<&CachedEntry<'_>>) -> bool {
        self.options.policy.cached_verdicts() == CachedVerdicts::Final
            && matches!(cached, Some(CachedEntry { node: CachedNode::Skipped(..), .. }))
    }

    /// Returns whether a directory belongs to the program. Its location decides, never its contents.
    pub(super) fn is_own(&self, path: &[u8], stamp: &Stamp) -> bool {
        self.options.own.contains(&(stamp.device, stamp.inode))
            || self.options.staging_areas.iter().any(|area| area.as_bytes() == path)
    }

    /// Returns the stamp of a symlink that the program made. Returns `None` if the name is anything else by now.
    pub(super) fn own_link(&self, directory: &Dir, name: &[u8], path: &[u8]) -> Option<Stamp> {
        let link = self.options.links.iter().find(|link| link.path.as_bytes() == path)?;
        let target = directory.read_link(name).ok()?;
        if target == link.target { directory.stamp_at(name).ok() } else { None }
    }

    /// Decides whether a name is captured.
    pub(super) fn judge(&self, path: &[u8], file_type: FileType, rules: &IgnoreRules, kind: DirectoryKind) -> Judged {
        let captured = |kind_below, exception| Judged::Captured { kind_below, exception };
        let is_directory = file_type == FileType::Directory;
        if matches!(kind, DirectoryKind::GitDirectory(_)) && is_of_git(name_of(path), file_type) {
            return Judged::Skipped(Reason::Git);
        }
        let kind = kind.below();
        let reason = match kind {
            DirectoryKind::Named => return captured(DirectoryKind::Named, Some(Exception::Named)),
            DirectoryKind::Ignored(reason) => reason,
            DirectoryKind::Ordinary | DirectoryKind::GitDirectory(_) if is_rule_file(path, is_directory) => {
                return captured(DirectoryKind::Ordinary, None);
            }
            DirectoryKind::Ordinary | DirectoryKind::GitDirectory(_) => match rules.judge(path, is_directory) {
                RuleVerdict::Captured => return captured(DirectoryKind::Ordinary, None),
                RuleVerdict::Ignored => Reason::Ignored,
            },
        };
        if kind == DirectoryKind::Ordinary && !is_directory && rules.is_precious(path) {
            return captured(kind, Some(Exception::Named));
        }
        if self.is_named(path) || rules.is_included(path, is_directory) {
            return captured(DirectoryKind::Named, Some(Exception::Named));
        }
        match self.exception(path, is_directory, rules, false) {
            Some(exception) => captured(DirectoryKind::Ignored(reason), Some(exception)),
            None => Judged::Skipped(reason),
        }
    }

    pub(super) fn is_borrowed_from(&self, path: &[u8], stamp: &Stamp) -> bool {
        self.options.policy.is_borrowed_from(stamp) && !self.options.policy.is_tracked(path)
    }

    /// Returns the exception that captures a path, or something below it, although a rule excludes it.
    pub(super) fn exception(
        &self,
        path: &[u8],
        is_directory: bool,
        rules: &IgnoreRules,
        is_certainly_unheld: bool,
    ) -> Option<Exception> {
        let policy = self.options.policy;
        let is_above_named = || {
            let here = WorkspacePath::new(path).unwrap_or_default();
            policy.named().iter().any(|named| named.is_within(&here))
        };
        if self.is_named(path) || (is_directory && (is_above_named() || rules.may_include_below(path))) {
            return Some(Exception::Named);
        }
        if policy.is_tracked(path) {
            return Some(Exception::Tracked);
        }
        let is_held =
            || policy.is_restored(path) || policy.is_held(path) && !rules.is_excluded_by_owner(path, is_directory);
        (!is_certainly_unheld && is_held()).then_some(Exception::Held)
    }

    fn is_held(&self, path: &[u8]) -> bool {
        self.options.policy.is_restored(path) || self.options.policy.is_held(path)
    }

    pub(super) fn is_named(&self, path: &[u8]) -> bool {
        let named = self.options.policy.named();
        !named.is_empty() && {
            let here = WorkspacePath::new(path).unwrap_or_default();
            named.iter().any(|named| here.is_within(named))
        }
    }
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
