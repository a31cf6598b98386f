//! The log file of commands that write: one line for each operation.
//!
//! A line has names that the program itself chose, numbers, ids and the name of the store's directory. It has no
//! contents of files, prompts, messages, command lines and paths.

use std::{
    fmt,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use backtrail::{app_files, json::timestamp};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber, error,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use crate::{bounded_log::BoundedLog, failure::Failure, settings::Environment};

/// The name of the file in the directory `log`.
const FILE: &str = "backtrail.log";

/// The maximum size of the file.
const MAX_BYTES: u64 = 1 << 20;

/// The name of the event that reports a failed command.
const COMMAND_FAILED: &str = "command_failed";

/// The code of an operation that panicked.
const PANIC: &str = "panic";

/// Fields whose text is recorded: ids, and words that the program itself chose. The text of any other field is left
/// out.
const TEXT_FIELDS: &[&str] = &["action", "checkpoint", "kind", "outcome", "safety", "target"];

/// Reports the failure of a command that writes to the log file.
pub(crate) fn command_failed(failure: &Failure) {
    error!(name: COMMAND_FAILED, code = failure.code().as_str(), "the command failed");
}

/// A line of the log file: an operation, or a command that failed outside an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    /// The time when the operation ended.
    #[serde(serialize_with = "with_milliseconds")]
    pub(crate) time: Timestamp,
    /// The version of the program.
    pub(crate) version: String,
    pub(crate) process: u32,
    pub(crate) command: String,
    /// The operation. `None` if the command failed outside an operation.
    pub(crate) operation: Option<String>,
    /// The name of the store's directory.
    pub(crate) store: Option<String>,
    pub(crate) milliseconds: u64,
    /// The code of the error. `None` if the operation succeeded.
    pub(crate) code: Option<String>,
    /// The names of events during the operation.
    pub(crate) events: Vec<String>,
    /// The counts and ids of the operation.
    pub(crate) details: Map<String, Value>,
}

fn with_milliseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp(*time))
}

/// Records the operations of one command.
pub(crate) struct CommandLog {
    file: CommandFile,
    started: Instant,
    /// The code of the last operation that failed.
    last_code: Mutex<Option<String>>,
}

/// The log file, for the lines of one command.
#[derive(Clone)]
struct CommandFile {
    log: BoundedLog,
    command: String,
}

impl CommandLog {
    /// Returns the log of a command. Returns `None` if the program has no directory for its own files.
    pub(crate) fn of_command(command: impl Into<String>, environment: &Environment) -> Option<Self> {
        let file = CommandFile { log: log_in(environment)?, command: command.into() };
        Some(Self { file, started: Instant::now(), last_code: Mutex::default() })
    }

    /// Returns all lines of the file, oldest first.
    pub(crate) fn entries(environment: &Environment) -> Vec<LogEntry> {
        log_in(environment).map(|log| log.lines()).unwrap_or_default()
    }

    /// Makes every panic add a line with its place in the source. Needed where a panic aborts the process: no span is
    /// closed then.
    pub(crate) fn record_panics(&self) {
        let (file, started, usual) = (self.file.clone(), self.started, std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            let mut running = Running { started, code: Some(PANIC.to_owned()), ..Running::new() };
            running.details.extend(panic.location().map(|place| ("at".to_owned(), place.to_string().into())));
            file.add(running, None);
            usual(panic);
        }));
    }

    fn remember_code(&self, code: Option<&String>) {
        if let Some(code) = code {
            *self.last_code.lock().unwrap_or_else(PoisonError::into_inner) = Some(code.clone());
        }
    }

    /// Adds a line for a failed command, unless the line of an operation has the same code.
    fn add_failure(&self, event: &Event<'_>) {
        let mut running = Running { started: self.started, ..Running::new() };
        event.record(&mut running);
        let known = self.last_code.lock().unwrap_or_else(PoisonError::into_inner).take();
        if known != running.code {
            self.file.add(running, None);
        }
    }
}

impl CommandFile {
    /// Appends a line. Errors are ignored: a log that can't be written must not fail a command.
    fn add(&self, running: Running, operation: Option<&str>) {
        let entry = LogEntry {
            time: Timestamp::now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            command: self.command.clone(),
            operation: operation.map(str::to_owned),
            milliseconds: u64::try_from(running.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            store: running.store,
            code: running.code,
            events: running.events,
            details: running.details,
        };
        if self.log.append(&entry).is_err() && self.make_directory() {
            drop(self.log.append(&entry));
        }
    }

    /// Creates the directory of the file. Returns `false` if it exists, or if the directory around it does not: that one
    /// holds the stores, and a log is no reason to create it.
    fn make_directory(&self) -> bool {
        let Some(directory) = self.log.directory() else { return false };
        let has_home = directory.parent().is_some_and(Path::is_dir);
        has_home && !directory.exists() && app_files::make_private_directories(directory).is_ok()
    }
}

fn log_in(environment: &Environment) -> Option<BoundedLog> {
    let directory = environment.own_file("log").ok()?;
    Some(BoundedLog::new(directory.join(FILE), MAX_BYTES))
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for CommandLog {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| span.parent().is_none()) else { return };
        let mut running = Running::new();
        attributes.record(&mut running);
        span.extensions_mut().insert(running);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(running) = span.extensions_mut().get_mut::<Running>()
        {
            values.record(running);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let name = event.metadata().name();
        if name == COMMAND_FAILED {
            self.add_failure(event);
        } else if let Some(operation) = context.event_scope(event).and_then(|scope| scope.from_root().next())
            && let Some(running) = operation.extensions_mut().get_mut::<Running>()
        {
            running.events.push(name.to_owned());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(mut running) = taken(&span) {
            if std::thread::panicking() {
                running.code = Some(PANIC.to_owned());
            }
            self.remember_code(running.code.as_ref());
            self.file.add(running, Some(span.name()));
        }
    }
}

fn taken<'s, S: LookupSpan<'s>>(span: &SpanRef<'s, S>) -> Option<Running> {
    span.extensions_mut().remove::<Running>()
}

/// An operation that has begun, with the fields recorded so far.
struct Running {
    started: Instant,
    store: Option<String>,
    code: Option<String>,
    events: Vec<String>,
    details: Map<String, Value>,
}

impl Running {
    fn new() -> Self {
        Self { started: Instant::now(), store: None, code: None, events: Vec::new(), details: Map::new() }
    }

    fn keep(&mut self, field: &Field, value: impl Into<Value>) {
        self.details.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Running {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "store" => self.store = Some(value.to_owned()),
            "code" => self.code = Some(value.to_owned()),
            name if TEXT_FIELDS.contains(&name) => self.keep(field, value),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if TEXT_FIELDS.contains(&field.name()) {
            self.keep(field, format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, panic::catch_unwind, path::PathBuf, process::Command};

    use tempfile::TempDir;
    use tracing::{debug_span, info, info_span};

    use super::*;
    use crate::logging;

    /// Names the directory of the test to the process that it starts.
    const PLACE: &str = "BACKTRAIL_TEST_COMMAND_LOG";

    fn environment(place: &TempDir) -> Environment {
        Environment::scratch(place.path(), PathBuf::from("/"))
    }

    fn home(place: &TempDir) -> PathBuf {
        place.path().join("backtrail")
    }

    fn place() -> TempDir {
        let place = TempDir::new().unwrap();
        fs::create_dir(home(&place)).unwrap();
        place
    }

    /// Runs a command. Returns all lines of the log.
    fn logged(place: &TempDir, run: impl FnOnce()) -> Vec<LogEntry> {
        let environment = environment(place);
        logging::during(None, CommandLog::of_command("test", &environment), run);
        CommandLog::entries(&environment)
    }

    /// Returns the lines that a command adds.
    fn lines_of(place: &TempDir, run: impl FnOnce()) -> Vec<LogEntry> {
        let before = CommandLog::entries(&environment(place)).len();
        logged(place, run).split_off(before)
    }

    #[test]
    fn an_operation_is_one_line_with_its_counts_and_events() {
        let place = place();
        let lines = lines_of(&place, || {
            let span = info_span!("save", store = "ws-1", changes = 3, kind = "manual", flag = true);
            span.in_scope(|| {
                debug_span!("scan", entries = 5).in_scope(|| info!(name: "pruned", "removed"));
                info_span!("inner").in_scope(|| ());
            });
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((line.command.as_str(), line.operation.as_deref()), ("test", Some("save")));
        assert_eq!((line.store.as_deref(), line.code.as_deref()), (Some("ws-1"), None));
        assert_eq!(line.events, ["pruned"]);
        let details = serde_json::json!({"changes": 3, "kind": "manual", "flag": true});
        assert_eq!(Value::Object(line.details.clone()), details);
    }

    /// A field with text is recorded only if it is known to hold no text of the user.
    #[test]
    fn the_text_of_other_fields_is_left_out() {
        let place = place();
        let lines = lines_of(&place, || {
            let span =
                info_span!("save", message = "secret", prompt = ?"secret", path = %"secret", checkpoint = %"abcd");
            span.in_scope(|| info!(name: "told", text = "secret", "secret"));
        });
        let text = serde_json::to_string(&lines).unwrap();
        assert!(!text.contains("secret") && text.contains("\"checkpoint\":\"abcd\""), "{text}");
    }

    #[test]
    fn spans_of_other_crates_are_ignored() {
        let place = place();
        let lines = lines_of(&place, || drop(info_span!(target: "rmcp", "request").entered()));
        assert_eq!(lines, []);
    }

    #[test]
    fn a_failed_command_is_one_line() {
        let place = place();
        let failure = Failure::usage("secret", None);
        let alone = lines_of(&place, || command_failed(&failure));
        assert!(matches!(&alone[..], [line] if line.operation.is_none() && line.code.as_deref() == Some("usage")));
        let with_operation = lines_of(&place, || {
            drop(info_span!("save", code = "usage").entered());
            command_failed(&failure);
        });
        assert!(matches!(&with_operation[..], [line] if line.operation.is_some()), "{with_operation:?}");
        let with_another = lines_of(&place, || {
            drop(info_span!("save", code = "busy").entered());
            command_failed(&failure);
        });
        assert_eq!(with_another.len(), 2);
    }

    #[test]
    fn an_operation_that_panics_has_a_code() {
        let place = place();
        let lines = lines_of(&place, || {
            let panics = || info_span!("save").in_scope(|| std::panic::panic_any(1));
            assert!(catch_unwind(panics).is_err());
        });
        assert!(matches!(&lines[..], [line] if line.code.as_deref() == Some(PANIC)), "{lines:?}");
    }

    /// Runs in a process of its own, because the panic hook is that of the process.
    #[test]
    fn panics_alone() {
        let Some(place) = std::env::var_os(PLACE) else { return };
        let environment = Environment::scratch(Path::new(&place), PathBuf::from("/"));
        CommandLog::of_command("test", &environment).unwrap().record_panics();
        panic!("secret");
    }

    #[test]
    fn a_panic_is_a_line_with_its_place_and_without_its_message() {
        let place = place();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["logging::command_log::tests::panics_alone", "--exact"]).env(PLACE, place.path());
        assert!(!command.output().unwrap().status.success());
        let lines = CommandLog::entries(&environment(&place));
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(line.code.as_deref(), Some(PANIC));
        assert!(line.details["at"].as_str().unwrap().contains("command_log.rs:"), "{line:?}");
        assert!(!serde_json::to_string(line).unwrap().contains("secret"));
    }

    #[test]
    fn the_file_is_private_and_bounded() {
        let place = place();
        lines_of(&place, || drop(info_span!("first").entered()));
        let file = home(&place).join("log").join(FILE);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let line = fs::read_to_string(&file).unwrap();
        fs::write(&file, line.repeat(1 + MAX_BYTES as usize / line.len())).unwrap();
        let entries = logged(&place, || drop(info_span!("last").entered()));
        assert!(fs::metadata(&file).unwrap().len() <= MAX_BYTES / 2 + 1_000);
        assert!(entries.len() > 1_000 && entries.last().unwrap().operation.as_deref() == Some("last"));
    }

    #[test]
    fn no_home_is_created_and_a_home_that_is_a_file_is_left_alone() {
        let place = TempDir::new().unwrap();
        assert_eq!(lines_of(&place, || drop(info_span!("save").entered())), []);
        assert!(!home(&place).exists());
        fs::write(home(&place), "a file").unwrap();
        assert_eq!(lines_of(&place, || drop(info_span!("save").entered())), []);
        assert_eq!(fs::read_to_string(home(&place)).unwrap(), "a file");
    }
}
