//! The files of the workspace: reads them into a [`Directory`](crate::model::Directory), decides which paths are
//! skipped, and caches the results of a scan.
//!
//! Independent of the store: contents go to a [`ContentSink`](crate::model::ContentSink).

mod cached_directory;
mod capture_policy;
mod changed;
mod directory_kind;
mod git_directory;
mod glob;
mod ignore;
mod judge;
mod path_glob;
mod read;
mod rebuildable;
mod revisit;
mod scanned;
mod staging_area;
mod stat_cache;
mod survey;
mod walk;

pub(crate) use capture_policy::{CachedVerdicts, CapturePolicy};
pub(crate) use changed::ChangedPaths;
pub(crate) use git_directory::{is_of_git, is_repository};
pub(crate) use ignore::{IgnoreRules, PatternSet, RuleSource, RuleVerdict, is_rule_file};
pub use path_glob::PathGlob;
pub(crate) use rebuildable::is_rebuildable;
pub(crate) use revisit::{Revisits, has_new_link};
pub(crate) use scanned::{Scan, ScanWatch};
pub(crate) use staging_area::{is_mark, is_marked, mark, new_staging_area};
pub(crate) use stat_cache::{CacheBase, StatCache};
pub use survey::Survey;
pub(crate) use survey::{Seen, SeenNode, SurveyOptions, survey};
pub(crate) use walk::{MAX_DEPTH, OwnLink, ScanOptions, scan};
