//! Output of `doctor`, for users and programs.

use backtrail::{Settings, settings::duration_text};
use serde::Serialize;

use super::{
    Paint,
    visible::{visible, wrapped},
    wording::set_bytes,
};

/// One check and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    /// The result. May have several lines.
    pub(crate) detail: String,
}

/// The JSON answer of `doctor`.
#[derive(Serialize)]
pub(crate) struct DoctorJson<'a> {
    checks: &'a [Check],
}

impl<'a> From<&'a [Check]> for DoctorJson<'a> {
    fn from(checks: &'a [Check]) -> Self {
        Self { checks }
    }
}

/// With fewer columns than this, the result of a check is printed below its name.
const NARROW: usize = 90;

/// Returns each check with its result. Further lines of a result are indented.
pub(crate) fn checks_text(checks: &[Check], columns: usize, paint: Paint) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let is_narrow = columns < NARROW;
    let indent = " ".repeat(if is_narrow { "ok    ".len() } else { "ok    ".len() + width + 2 });
    let text = |check: &Check| {
        let word = if check.ok { paint.added("ok  ") } else { paint.warning("LOOK") };
        let lines = check.detail.lines().map(|line| wrapped(&visible(line), columns, &indent));
        let detail = lines.collect::<Vec<_>>().join(&format!("\n{indent}"));
        if is_narrow {
            return format!("{word}  {}\n{indent}{detail}\n", paint.heading(check.name));
        }
        format!("{word}  {}  {detail}\n", paint.heading(format!("{:<width$}", check.name)))
    };
    checks.iter().map(text).collect()
}

/// The name of a setting, and a function that returns its value as text.
struct SettingInForce {
    name: &'static str,
    value: fn(&Settings) -> String,
}

/// Settings that hold text of the user, such as a path or a command line. A bug report names only the default value.
const WITH_TEXT: &[&str] = &[
    "scan.exclude",
    "scan.include",
    "scan.precious",
    "state.features",
    "state.progress",
    "stores.dir",
    "pipelines.agent",
];

const SETTINGS: &[SettingInForce] = &[
    SettingInForce { name: "checkpoints.auto", value: |settings| settings.checkpoints.auto.to_string() },
    SettingInForce {
        name: "checkpoints.every_n_steps",
        value: |settings| settings.checkpoints.every_n_steps.to_string(),
    },
    SettingInForce {
        name: "checkpoints.max_checkpoints",
        value: |settings| settings.checkpoints.max_checkpoints.to_string(),
    },
    SettingInForce { name: "checkpoints.tell_agent", value: |settings| settings.checkpoints.tell_agent.to_string() },
    SettingInForce { name: "retention.automatic", value: |settings| settings.retention.automatic.to_string() },
    SettingInForce { name: "retention.session", value: |settings| settings.retention.session.to_string() },
    SettingInForce { name: "retention.turn", value: |settings| settings.retention.turn.to_string() },
    SettingInForce { name: "retention.step", value: |settings| settings.retention.step.to_string() },
    SettingInForce { name: "retention.safety", value: |settings| settings.retention.safety.to_string() },
    SettingInForce {
        name: "retention.thread",
        value: |settings| or_none(settings.retention.thread.map(|thread| thread.to_string())),
    },
    SettingInForce { name: "retention.unsaved", value: |settings| duration_text(settings.retention.unsaved) },
    SettingInForce {
        name: "retention.max_age",
        value: |settings| or_none(settings.retention.max_age.map(duration_text)),
    },
    SettingInForce {
        name: "retention.max_bytes",
        value: |settings| or_none(settings.retention.max_bytes.map(set_bytes)),
    },
    SettingInForce { name: "scan.exclude", value: |settings| list(&settings.scan.exclude) },
    SettingInForce { name: "scan.include", value: |settings| list(&settings.scan.include) },
    SettingInForce { name: "scan.precious", value: |settings| list(&settings.scan.precious) },
    SettingInForce {
        name: "scan.rebuildable",
        value: |settings| if settings.scan.capture_rebuildable { "capture".into() } else { "skip".into() },
    },
    SettingInForce { name: "scan.max_file_bytes", value: |settings| set_bytes(settings.scan.max_file_bytes) },
    SettingInForce {
        name: "state.features",
        value: |settings| or_none(settings.state.features.as_ref().map(|path| path.to_text().into_owned())),
    },
    SettingInForce {
        name: "state.progress",
        value: |settings| or_none(settings.state.progress.as_ref().map(|path| path.to_text().into_owned())),
    },
    SettingInForce {
        name: "stores.dir",
        value: |settings| or_none(settings.stores.dir.as_ref().map(|directory| directory.display().to_string())),
    },
    SettingInForce { name: "stores.cache_size", value: |settings| settings.stores.cache_size.to_string() },
    SettingInForce { name: "pipelines.agent", value: |settings| or_none(settings.pipelines.agent.clone()) },
];

/// Returns the effective settings, one line each, with the source of each value.
pub(crate) fn settings_text(defaults: &Settings, user: &Settings, in_force: &Settings) -> String {
    let width = SETTINGS.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
    let line = |setting: &SettingInForce| {
        let (value, source) = setting.value_and_source(defaults, user, in_force);
        format!("{:<width$} = {value}  ({source})", setting.name)
    };
    SETTINGS.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A setting in a bug report.
#[derive(Debug, Serialize)]
pub(crate) struct SettingReported {
    pub(crate) name: &'static str,
    /// The value, or `(set)` for text of the user.
    pub(crate) value: String,
    pub(crate) source: &'static str,
}

/// Returns the effective settings for a bug report.
pub(crate) fn settings_reported(defaults: &Settings, user: &Settings, in_force: &Settings) -> Vec<SettingReported> {
    let reported = |setting: &SettingInForce| {
        let (value, source) = setting.value_and_source(defaults, user, in_force);
        let is_open = !WITH_TEXT.contains(&setting.name) || value == (setting.value)(defaults);
        SettingReported { name: setting.name, value: if is_open { value } else { "(set)".to_owned() }, source }
    };
    SETTINGS.iter().map(reported).collect()
}

impl SettingInForce {
    fn value_and_source(&self, defaults: &Settings, user: &Settings, in_force: &Settings) -> (String, &'static str) {
        let [default, of_user, value] = [defaults, user, in_force].map(self.value);
        let source = match () {
            () if value != of_user => "the workspace's file",
            () if value != default => "the user's file",
            () => "default",
        };
        (value, source)
    }
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".into())
}

fn list(words: &[String]) -> String {
    format!("{words:?}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn settings_are_listed_with_their_source() {
        let defaults = Settings::default();
        let mut user = defaults.clone();
        user.retention.max_age = Some(Duration::from_secs(30 * 86_400));
        user.retention.step = 7;
        let mut own = user.clone();
        own.retention.step = 8;
        let text = settings_text(&defaults, &user, &own);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("retention.max_age"), "30d (the user's file)");
        assert_eq!(line("retention.step"), "8 (the workspace's file)");
        assert_eq!(line("retention.turn"), "200 (default)");
    }

    #[test]
    fn a_report_names_no_text_of_the_user() {
        let defaults = Settings::default();
        let mut own = defaults.clone();
        own.scan.exclude = vec!["secret".into()];
        own.scan.include = vec!["secret".into()];
        own.scan.precious = vec!["secret".into()];
        own.state.features = Some(backtrail::WorkspacePath::new("secret").unwrap());
        own.state.progress = Some(backtrail::WorkspacePath::new("secret").unwrap());
        own.stores.dir = Some("/secret".into());
        own.pipelines.agent = Some("run --key secret".into());
        own.retention.step = 7;
        let reported = settings_reported(&defaults, &own, &own);
        let values: Vec<&str> = reported.iter().map(|setting| setting.value.as_str()).collect();
        assert!(!values.iter().any(|value| value.contains("secret")), "{values:?}");
        assert_eq!(values.iter().filter(|value| **value == "(set)").count(), WITH_TEXT.len());
        assert!(values.contains(&"7"));
        let defaults = settings_reported(&defaults, &defaults, &defaults);
        assert!(!defaults.iter().any(|setting| setting.value == "(set)"));
    }
}
