//! The resources of the protocol: the timeline, and the changes of each checkpoint.

use backtrail::{ErrorCode, PatchLimits, Scope};
use percent_encoding::percent_decode_str;
use rmcp::model::{ErrorData, Resource, ResourceContents, ResourceTemplate};

use crate::{
    access::{self, Purpose},
    failure::Failure,
    running::Call,
    tools::{CUT_MARK, Shared, timeline},
};

const TIMELINE: &str = "backtrail://timeline";
const CHECKPOINTS: &str = "backtrail://checkpoints/";
const DIFF: &str = "/diff";
const DIFF_TEMPLATE: &str = "backtrail://checkpoints/{checkpoint}/diff";
const DIFF_TYPE: &str = "text/x-diff";
const JSON_TYPE: &str = "application/json";

/// The maximum number of checkpoints in the timeline.
const MAX_CHECKPOINTS: usize = 100;
/// The maximum number of checkpoints whose diffs are in the list of resources.
const MAX_LISTED: usize = 20;
const MAX_PATCH_BYTES: usize = 200_000;
const MAX_TITLE_CHARS: usize = 80;
const MAX_URI_BYTES: usize = 2_000;

/// Lists the timeline, and the diffs of the newest checkpoints.
pub(crate) fn list(shared: &Shared, call: &Call) -> Result<Vec<Resource>, Failure> {
    let (workspace, _) = shared.open(Purpose::Look, call)?;
    let newest = workspace.list(&backtrail::ListFilter { limit: Some(MAX_LISTED), ..Default::default() })?;
    let timeline = Resource::new(TIMELINE, "timeline")
        .with_title("Timeline of checkpoints")
        .with_description("The newest checkpoints of the workspace, newest first")
        .with_mime_type(JSON_TYPE);
    let diffs = newest.iter().map(|checkpoint| {
        let title: String =
            checkpoint.message.lines().next().unwrap_or_default().chars().take(MAX_TITLE_CHARS).collect();
        Resource::new(format!("{CHECKPOINTS}{}{DIFF}", checkpoint.id), format!("diff-{}", checkpoint.id.short()))
            .with_title(format!("{} {title}", checkpoint.id.short()))
            .with_description("What this checkpoint changed, as a patch")
            .with_mime_type(DIFF_TYPE)
    });
    Ok([timeline].into_iter().chain(diffs).collect())
}

/// Lists the resources that exist for every checkpoint.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let diff = ResourceTemplate::new(DIFF_TEMPLATE, "checkpoint-diff")
        .with_title("What a checkpoint changed")
        .with_description(
            "A unified patch against the checkpoint before it; {checkpoint} is an id, a name, @ or latest",
        )
        .with_mime_type(DIFF_TYPE);
    vec![diff]
}

/// Returns the contents of a resource.
pub(crate) fn read(shared: &Shared, call: &Call, uri: &str) -> Result<ResourceContents, Failure> {
    access::limited("uri", uri, MAX_URI_BYTES)?;
    if uri == TIMELINE {
        let answer = timeline(shared, call, MAX_CHECKPOINTS)?;
        let text = serde_json::to_string(&answer).map_err(|error| Failure::internal(error.to_string()))?;
        return Ok(ResourceContents::text(text, uri).with_mime_type(JSON_TYPE));
    }
    let word = uri.strip_prefix(CHECKPOINTS).and_then(|rest| rest.strip_suffix(DIFF));
    let word = word.and_then(|word| percent_decode_str(word).decode_utf8().ok()).ok_or_else(|| {
        let message = format!("there is no resource {uri:?}");
        Failure::new(ErrorCode::UnknownPath, message)
            .with_hint("the resources are backtrail://timeline and backtrail://checkpoints/ID/diff")
    })?;
    let (workspace, precious) = shared.open(Purpose::Look, call)?;
    let id = access::checkpoint(&workspace, &word, &call.now)?;
    let limits = PatchLimits { hide: Some(&precious), max_bytes: Some(MAX_PATCH_BYTES), ..PatchLimits::default() };
    let diff = workspace.diff_of(&id, &Scope::Whole, &limits)?;
    let mut text = diff.patch;
    if diff.is_cut {
        text.push_str(CUT_MARK);
    }
    for path in diff.hidden {
        // Programs that apply the patch ignore lines outside of a hunk.
        text.push_str(&format!("# {:?} is precious: its contents are not shown\n", path.to_text()));
    }
    Ok(ResourceContents::text(text, uri).with_mime_type(DIFF_TYPE))
}

/// Converts a failure to an error of the protocol, for requests that are not tool calls.
pub(crate) fn error(failure: &Failure) -> ErrorData {
    let message = failure.message().to_owned();
    let data = Some(failure.to_json());
    let is_missing = [ErrorCode::UnknownCheckpoint, ErrorCode::AmbiguousCheckpoint, ErrorCode::UnknownPath]
        .into_iter()
        .any(|code| failure.is(code));
    if is_missing {
        ErrorData::resource_not_found(message, data)
    } else if failure.is(ErrorCode::Usage) {
        ErrorData::invalid_params(message, data)
    } else {
        ErrorData::internal_error(message, data)
    }
}
