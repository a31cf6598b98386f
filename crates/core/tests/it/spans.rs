//! The spans and events that operations give to a `tracing` subscriber.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use backtrail::{Origin, RestoreRequest, SaveRequest, Scope, StepRequest, Way};
use backtrail_testkit::TestWorkspace;
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

/// One span or event, as a subscriber sees it.
#[derive(Debug, Clone)]
struct Heard {
    is_span: bool,
    name: String,
    level: tracing::Level,
    /// The names of the spans around it, outermost first.
    within: Vec<String>,
    /// Every field with its value, in the order of their recording.
    fields: String,
}

/// Collects every span when it closes, and every event.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Heard>>>);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Ear {
    fn on_new_span(&self, new: &tracing::span::Attributes<'_>, id: &tracing::span::Id, context: Context<'_, S>) {
        let mut fields = Fields(String::new());
        new.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &tracing::span::Id, values: &tracing::span::Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_close(&self, id: tracing::span::Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let around = span.parent().map(|parent| parent.scope().from_root().map(|span| span.name().to_owned()));
        let fields = span.extensions().get::<Fields>().unwrap().0.clone();
        self.0.lock().unwrap().push(Heard {
            is_span: true,
            name: span.name().to_owned(),
            level: *span.metadata().level(),
            within: around.map(Iterator::collect).unwrap_or_default(),
            fields,
        });
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let around = context.event_scope(event).map(|scope| scope.from_root().map(|span| span.name().to_owned()));
        self.0.lock().unwrap().push(Heard {
            is_span: false,
            name: event.metadata().name().to_owned(),
            level: *event.metadata().level(),
            within: around.map(Iterator::collect).unwrap_or_default(),
            fields: fields.0,
        });
    }
}

/// Runs `act`, and returns what it told a subscriber that listens to everything.
fn heard(act: impl FnOnce()) -> Vec<Heard> {
    let ear = Ear::default();
    tracing::subscriber::with_default(Registry::default().with(ear.clone()), act);
    let heard = ear.0.lock().unwrap();
    heard.clone()
}

fn spans(heard: &[Heard]) -> Vec<String> {
    let path = |heard: &Heard| [heard.within.as_slice(), std::slice::from_ref(&heard.name)].concat().join("/");
    heard.iter().filter(|heard| heard.is_span).map(path).collect()
}

fn span<'h>(heard: &'h [Heard], name: &str) -> &'h Heard {
    heard.iter().find(|heard| heard.is_span && heard.name == name).unwrap_or_else(|| panic!("no span {name}"))
}

#[test]
fn a_save_has_a_span_with_its_phases_and_counts() {
    let w = TestWorkspace::new();
    w.write("a", "1\n");
    w.write("b", "2\n");
    let workspace = w.open();
    let heard = heard(|| drop(workspace.save(&SaveRequest::default(), w.now()).unwrap()));
    let expected = ["lock", "scan", "snapshot", "compare", "publish", "stat_cache", "retain", "tidy"];
    let expected: Vec<String> =
        expected.map(|phase| format!("save/{phase}")).into_iter().chain(["save".into()]).collect();
    assert_eq!(spans(&heard), expected);
    let save = span(&heard, "save");
    assert_eq!(save.level, tracing::Level::INFO);
    let store = w.store().file_name().unwrap().to_str().unwrap().to_owned();
    for part in [&format!("store={store:?} "), "created=true ", "kind=\"manual\" ", "changes=2 ", "bytes=4 "] {
        assert!(save.fields.contains(part), "{part}: {}", save.fields);
    }
    assert!(span(&heard, "scan").fields.contains("bytes_read=4 "), "{heard:?}");
    assert!(heard.iter().any(|heard| heard.name == "store_created" && heard.within == ["save"]), "{heard:?}");
}

#[test]
fn a_restore_and_its_undo_have_the_phases_of_the_transaction() {
    let w = TestWorkspace::new();
    w.write("a", "1\n");
    let saved = w.save();
    w.write("a", "2\n");
    let workspace = w.open();
    let heard_restore = heard(|| drop(workspace.restore(&RestoreRequest::whole(saved.id), w.now()).unwrap()));
    let phases = ["lock", "plan/scan", "plan/compare", "plan", "stage", "safety/snapshot", "safety/publish", "safety"];
    let phases = phases.into_iter().chain(["journal", "stat_cache", "apply", "finish", "tidy"]);
    let expected = |name: &str| {
        let below = phases.clone().map(|phase| format!("{name}/{phase}"));
        below.chain([name.to_owned()]).collect::<Vec<_>>()
    };
    assert_eq!(spans(&heard_restore), expected("restore"));
    let fields = &span(&heard_restore, "restore").fields;
    assert!(fields.contains(&format!("target={} ", saved.id.short())) && fields.contains("changes=1 "), "{fields}");
    let heard_undo = heard(|| drop(workspace.undo(w.now()).unwrap()));
    assert_eq!(spans(&heard_undo), expected("undo"));
}

#[test]
fn every_operation_has_a_span() {
    let w = TestWorkspace::new();
    w.write("a", "1\n");
    let saved = w.save();
    let (workspace, now) = (w.open(), w.now());
    let id = saved.id;
    let path = w.workspace_path("a");
    let told = heard(|| {
        drop(workspace.step(&StepRequest::default(), now).unwrap());
        drop(workspace.status(None).unwrap());
        drop(workspace.diff(Some(id), None, &Scope::Whole).unwrap());
        drop(workspace.show(&id).unwrap());
        drop(workspace.list(&backtrail::ListFilter::default()).unwrap());
        drop(workspace.history(&path).unwrap());
        workspace.cat(&id, &path, &mut |_| Ok(())).unwrap().unwrap();
        drop(workspace.plan_restore(&RestoreRequest::whole(id)).unwrap());
        drop(workspace.redo(now).unwrap());
        drop(workspace.recover(Way::Forward, now).unwrap());
        drop(workspace.pin(&id, now).unwrap());
        drop(workspace.unpin(&id, now).unwrap());
        drop(workspace.plan_prune(now).unwrap());
        drop(workspace.prune(now).unwrap());
        drop(workspace.verify().unwrap());
        assert_eq!(workspace.export(&id, &w.outside().join("export")).unwrap(), 1);
        drop(workspace.exclude(&w.root(), &["*.log".into()], now).unwrap());
        drop(workspace.delete(&[id], false, now).unwrap());
        workspace.init(now).unwrap();
    });
    let names: Vec<&str> =
        told.iter().filter(|heard| heard.is_span && heard.within.is_empty()).map(|heard| heard.name.as_str()).collect();
    let expected = "step status diff show list history cat plan_restore redo recover pin unpin plan_prune prune verify \
                    export exclude delete init";
    assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
    for name in ["status", "diff", "show", "list", "history", "cat", "plan_restore", "plan_prune", "verify"] {
        assert_eq!(span(&told, name).level, tracing::Level::DEBUG, "{name} only reads");
    }
}

#[test]
fn a_failure_is_told_by_its_code() {
    let w = TestWorkspace::new();
    w.write("a", "1\n");
    let saved = w.save();
    let workspace = w.open();
    let told = heard(|| {
        workspace.delete(&[saved.id], false, w.now()).unwrap();
        workspace.delete(&[saved.id], false, w.now()).unwrap_err();
    });
    let codes: Vec<bool> = told
        .iter()
        .filter(|heard| heard.name == "delete")
        .map(|heard| heard.fields.contains("code=\"unknown_checkpoint\""))
        .collect();
    assert_eq!(codes, [false, true]);
}

#[test]
fn the_number_of_spans_does_not_depend_on_the_number_of_files() {
    let count = |files: usize| {
        let w = TestWorkspace::new();
        for number in 0..files {
            w.write(format!("dir{}/{number}", number % 7), "1\n");
        }
        let workspace = w.open();
        let saved = heard(|| drop(workspace.save(&SaveRequest::default(), w.now()).unwrap()));
        let seen = heard(|| drop(workspace.status(None).unwrap()));
        spans(&saved).len() + spans(&seen).len()
    };
    assert_eq!(count(10), count(400));
}

#[test]
fn contents_and_the_users_words_are_told_to_no_subscriber() {
    let w = TestWorkspace::new();
    w.write("a", "a secret of a file\n");
    let workspace = w.open();
    let request = SaveRequest {
        message: Some("a secret of a message".into()),
        description: Some("a secret of a description".into()),
        origin: Origin {
            prompt: Some("a secret of a prompt".into()),
            tool: Some("a secret of a tool".into()),
            session: Some("a secret of a session".into()),
            ..Origin::default()
        },
        ..SaveRequest::default()
    };
    let told = heard(|| {
        let saved = workspace.save(&request, w.now()).unwrap();
        w.write("a", "another secret\n");
        drop(workspace.diff(Some(saved.checkpoint.id), None, &Scope::Whole).unwrap());
        drop(workspace.restore(&RestoreRequest::whole(saved.checkpoint.id), w.now()).unwrap());
    });
    assert!(told.iter().any(|heard| heard.fields.contains("\"a\"")), "the paths are told at the level trace");
    for heard in &told {
        assert!(!heard.fields.contains("secret"), "{heard:?}");
        let root = w.root().display().to_string();
        assert!(heard.level > tracing::Level::INFO || !heard.fields.contains(&root), "a path at info: {heard:?}");
    }
}
