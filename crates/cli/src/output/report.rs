//! Output of `doctor --report`, for a person who reads a bug report.

use std::fmt::Display;

use backtrail::json::timestamp;

use crate::{
    logging::LogEntry,
    report::{EventReported, HookReported, OperationReported, Report, WorkspaceReported},
};

/// Returns the report as text.
pub(crate) fn report_text(report: &Report) -> String {
    let mut text = Sections(about(report));
    text.add("workspace", report.workspace.iter().flat_map(workspace));
    let settings =
        report.settings.iter().map(|setting| format!("{} = {} ({})", setting.name, setting.value, setting.source));
    text.add("settings", settings);
    let checks = report.checks.iter().map(|check| format!("{} {}", if check.ok { "ok  " } else { "LOOK" }, check.name));
    text.add("checks", checks);
    text.add("restores and deletions", report.operations.iter().map(operation));
    text.add("events", report.events.iter().map(event));
    text.add("hooks", report.hooks.iter().map(hook));
    text.add("log", report.log.iter().map(entry));
    text.0
}

/// The text so far.
struct Sections(String);

impl Sections {
    /// Adds a section, with `none` if it has no line.
    fn add(&mut self, title: &str, lines: impl Iterator<Item = String>) {
        self.0.push_str(&format!("\n{title}\n"));
        let before = self.0.len();
        lines.for_each(|line| self.0.push_str(&format!("  {line}\n")));
        if self.0.len() == before {
            self.0.push_str("  none\n");
        }
    }
}

fn about(report: &Report) -> String {
    let (program, system) = (&report.program, &report.system);
    let unknown = || "not found".to_owned();
    let variables = if report.variables.is_empty() { "none".to_owned() } else { report.variables.join(", ") };
    let problem = report.problem.map(|code| format!("the workspace can't be examined: {code}\n")).unwrap_or_default();
    format!(
        "backtrail {} ({}, run as {})\nsystem: {}, {}, {}\ngit: {}\nset in the environment: {variables}\n{problem}",
        program.version,
        program.build,
        program.started_as,
        system.kernel,
        system.machine,
        system.distribution.clone().unwrap_or_else(|| "unknown distribution".to_owned()),
        system.git.clone().unwrap_or_else(unknown),
    )
}

fn workspace(workspace: &WorkspaceReported) -> Vec<String> {
    let kinds: Vec<String> = workspace.checkpoints.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    vec![
        format!("file system: {}", or_unknown(workspace.file_system.as_ref())),
        format!("store: {}", workspace.store.as_deref().unwrap_or("not made yet")),
        format!("file system of the store: {}", or_unknown(workspace.store_file_system.as_ref())),
        format!("bytes of the store: {}", or_unknown(workspace.store_bytes.as_ref())),
        format!("checkpoints: {kinds}"),
        format!("interrupted restore: {}", yes_or_no(workspace.has_interrupted_restore)),
        format!("damage in the log of operations: {}", yes_or_no(workspace.has_damaged_operations)),
        format!("git repository: {}", yes_or_no(workspace.has_git)),
    ]
}

fn operation(done: &OperationReported) -> String {
    let time = done.time.as_deref().unwrap_or("-");
    let mut line = format!("{time} {} #{} checkpoint={}", done.operation, done.sequence, done.checkpoint.short());
    add(&mut line, "safety", done.safety.map(|id| id.short()));
    add(&mut line, "paths", done.paths);
    line
}

fn event(event: &EventReported) -> String {
    let mut line = format!("{} {}", event.time, event.event);
    add(&mut line, "checkpoint", event.checkpoint.map(|id| id.short()));
    add(&mut line, "safety", event.safety.map(|id| id.short()));
    add(&mut line, "kind", event.kind);
    add(&mut line, "count", event.count);
    add(&mut line, "outcome", event.outcome);
    add(&mut line, "code", event.code);
    line
}

fn hook(line: &HookReported) -> String {
    format!("{} {} {} {}", line.time, line.sort.as_str(), line.agent, line.event)
}

fn entry(entry: &LogEntry) -> String {
    let operation = entry.operation.as_deref().unwrap_or("-");
    let mut line = format!("{} {}: {operation} {} ms", timestamp(entry.time), entry.command, entry.milliseconds);
    add(&mut line, "code", entry.code.as_ref());
    entry.events.iter().for_each(|event| add(&mut line, "event", Some(event)));
    entry.details.iter().for_each(|(name, value)| match value.as_str() {
        Some(text) => add(&mut line, name, Some(text)),
        None => add(&mut line, name, Some(value)),
    });
    line
}

fn add(line: &mut String, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        line.push_str(&format!(" {name}={value}"));
    }
}

fn or_unknown(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
