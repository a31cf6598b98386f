//! The only module that prints: data to stdout, messages to stderr.

mod bisect;
mod blame;
mod changes;
mod conversation;
mod doctor;
mod forks;
mod graph;
mod history;
mod installed;
mod json;
mod log;
#[expect(clippy::module_inception, reason = "the output is the noun of this folder, and this file holds it")]
mod output;
mod overview;
mod pager;
mod pipeline;
mod progress;
mod report;
mod restored;
mod reverted;
mod saved;
mod shown;
mod style;
mod timeline;
mod tried;
mod visible;
mod watched;
mod wording;
mod workspaces;

pub use output::OutputError;
pub(crate) use {
    bisect::{candidate_title, culprit_text},
    blame::BlameTable,
    changes::{change_list, name_status, shown_patch, stat},
    conversation::{WithConversation, conversation_text},
    doctor::{Check, DoctorJson, SettingReported, checks_text, settings_reported, settings_text},
    forks::{adopt_plan_text, adopted_text, forked_sentence, forks_text, not_copied_warning},
    history::HistoryTable,
    installed::{
        AfterInstall, AgentListed, AgentsJson, InstalledJson, after_install_text, agents_text, installed_text,
    },
    json::{InitJson, UiJson, VerifyJson, json_line},
    log::{WhenFull, log_layer},
    output::{Output, Remarks, answer_hook, is_hook_heard, offer, talk_of_hook},
    overview::{Overview, overview},
    pipeline::{PipelineJson, pipeline_plan_text},
    report::report_text,
    restored::{
        ExportJson, RecoverJson, Restore, also_notes, conflict_warnings, lacking_warnings, plan_text, restored_text,
        restored_warnings, way_back,
    },
    reverted::{conflict_line, revert_plan_text, reverted_text, reverted_warnings},
    saved::{
        capture_larger, dropped_warnings, exclude_commands, saved_sentence, saved_warnings, stepped_sentence,
        uncaptured_warnings,
    },
    shown::shown,
    style::Paint,
    timeline::{Timeline, turns},
    tried::{
        RollbackErrorJson, TriedJson, WrappedJson, moved_head_sentence, not_rolled_back_sentence,
        not_taken_back_sentence, rolled_back_sentence, stays_pinned_sentence, way_to_take_back,
    },
    visible::{columns, cut, first_line, pad, visible, visible_path},
    watched::{WatchStatusJson, directories_watched, watch_status},
    wording::{bytes, plural, set_bytes, shell_path, shell_words, title, title_words, when},
    workspaces::{
        AdoptedJson, BinJson, DeletedJson, ExcludedJson, ForgottenJson, PinnedJson, PruneJson,
        bin_text, deleted_text, kept_text, loss_lines, verdicts_text, workspaces_text,
    },
};
