//! Steps of an agent: they are counted per session, and a step takes a checkpoint if one is due.

use backtrail::{Kind, ListFilter, Origin, Settings, StepRequest, Stepped, Workspace};
use backtrail_testkit::TestWorkspace;

fn with_settings(ws: &TestWorkspace, change: impl FnOnce(&mut Settings)) -> Workspace {
    let mut settings = Settings::default();
    change(&mut settings);
    ws.open_with(&ws.root(), settings)
}

fn request_of_session(session: &str) -> StepRequest {
    StepRequest { origin: Origin { session: Some(session.into()), ..Origin::default() }, ..StepRequest::default() }
}

fn request_for_paths(ws: &TestWorkspace, paths: &[&str]) -> StepRequest {
    let paths = paths.iter().map(|path| ws.workspace_path(path)).collect();
    StepRequest { paths, ..StepRequest::default() }
}

fn is_held(ws: &TestWorkspace, stepped: &Stepped, path: &str) -> bool {
    let id = stepped.checkpoint().expect("a checkpoint was taken").id;
    ws.paths_in_store(&id).iter().any(|held| held == path)
}

#[test]
fn each_session_has_a_count_of_its_own() {
    let ws = TestWorkspace::new();
    let mut seen = Vec::new();
    for (number, session) in ["a", "a", "b", "a", "b"].into_iter().enumerate() {
        ws.write("f", number.to_string());
        let stepped = ws.open().step(&request_of_session(session), ws.now()).unwrap();
        let checkpoint = stepped.checkpoint().unwrap();
        assert_eq!((checkpoint.kind, checkpoint.origin.step), (Kind::Step, Some(stepped.step)));
        assert_eq!(checkpoint.origin.session.as_deref(), Some(session));
        seen.push(stepped.step);
    }
    assert_eq!(seen, [1, 2, 1, 3, 2]);
    assert_eq!(ws.open().step(&StepRequest::default(), ws.now()).unwrap().step, 1, "without a session");
}

#[test]
fn everything_that_a_hook_knows_is_recorded() {
    let ws = TestWorkspace::new();
    ws.write("f", "1");
    let request = StepRequest {
        message: Some("before Edit".into()),
        metadata: serde_json::from_str(r#"{"tool_use_id": "t1"}"#).unwrap(),
        paths: Vec::new(),
        origin: Origin {
            session: Some("s".into()),
            agent: Some("claude".into()),
            turn: Some(4),
            prompt: Some("do it".into()),
            tool: Some("Edit".into()),
            ..Origin::default()
        },
        ..StepRequest::default()
    };
    let stepped = ws.open().step(&request, ws.now()).unwrap();
    let made = stepped.checkpoint().unwrap();
    assert_eq!(
        (made.origin.agent.as_deref(), made.origin.turn, made.origin.prompt.as_deref()),
        (Some("claude"), Some(4), Some("do it"))
    );
    assert_eq!((made.origin.tool.as_deref(), made.message.as_str()), (Some("Edit"), "before Edit"));
    assert_eq!(made.metadata["tool_use_id"], "t1");
}

#[test]
fn a_due_step_without_a_change_takes_no_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write("f", "1");
    assert!(ws.open().step(&request_of_session("s"), ws.now()).unwrap().saved.is_some());
    let with_message = StepRequest {
        message: Some("again".into()),
        origin: Origin { tool: Some("Bash".into()), session: Some("s".into()), ..Origin::default() },
        ..request_of_session("s")
    };
    let stepped = ws.open().step(&with_message, ws.now()).unwrap();
    assert_eq!((stepped.step, stepped.saved.is_some()), (2, false));
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1);
}

#[test]
fn without_auto_steps_are_counted_and_no_checkpoint_is_taken() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "ignored\n");
    ws.write("ignored", "1");
    let workspace = with_settings(&ws, |settings| settings.checkpoints.auto = false);
    for number in 1..=3 {
        ws.write("f", number.to_string());
        let stepped = workspace.step(&request_for_paths(&ws, &["f", "ignored"]), ws.now()).unwrap();
        assert_eq!((stepped.step, stepped.saved.is_some()), (number, false));
    }
}

#[test]
fn paths_are_captured_before_they_change_even_if_a_rule_skips_them() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "private/\n*.log\n");
    ws.write("private/notes", "1");
    ws.write("private/other", "1");
    ws.write("plain", "1");
    ws.write("node_modules/dep/index.js", "1");
    ws.write("package.json", "{}");
    ws.save();
    let workspace = with_settings(&ws, |settings| settings.checkpoints.every_n_steps = 50);
    let step = |paths: &[&str]| workspace.step(&request_for_paths(&ws, paths), ws.now()).unwrap();

    assert!(step(&["plain"]).saved.is_none(), "the last checkpoint has it");
    assert!(step(&["to/be/made", "new.log"]).saved.is_none(), "the paths do not exist yet");
    let stepped = step(&["plain", "private/notes"]);
    assert!(is_held(&ws, &stepped, "private/notes") && !is_held(&ws, &stepped, "private/other"));
    assert!(step(&["private/notes"]).saved.is_none(), "it is already captured");
    let stepped = step(&["node_modules/dep/index.js"]);
    assert!(is_held(&ws, &stepped, "node_modules/dep/index.js") && is_held(&ws, &stepped, "private/notes"));
    ws.write("fresh", "made since the last checkpoint");
    assert!(is_held(&ws, &step(&["fresh"]), "fresh"));
    ws.mkdir("dir");
    ws.write("dir/below", "1");
    assert!(is_held(&ws, &step(&["dir"]), "dir/below"));
}

#[test]
fn only_paths_that_a_rule_skips_are_recorded_as_included() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "private\n");
    ws.write("plain", "1");
    ws.write("private", "1");
    let stepped = ws.open().step(&request_for_paths(&ws, &["plain", "private"]), ws.now()).unwrap();
    let id = stepped.checkpoint().unwrap().id.to_string();
    let message = String::from_utf8(ws.store_git(&["log", "-1", "--format=%B", &id])).unwrap();
    assert!(message.contains(r#""included":["private"]"#), "{message}");
}

#[test]
fn a_step_ignores_paths_that_no_checkpoint_can_hold() {
    let ws = TestWorkspace::new();
    ws.write("f", "1");
    ws.git_init();
    ws.save();
    make_fifo(&ws);
    let workspace = with_settings(&ws, |settings| settings.checkpoints.every_n_steps = 50);
    let stepped = workspace.step(&request_for_paths(&ws, &[".git/config", "fifo"]), ws.now()).unwrap();
    assert!(stepped.saved.is_none());
}

fn make_fifo(ws: &TestWorkspace) {
    let made = std::process::Command::new("mkfifo").arg(ws.path("fifo")).status().unwrap();
    assert!(made.success());
}

/// If numbers were repeated, `step:N` would name the wrong checkpoint. A lost count therefore continues from the
/// timeline.
#[test]
fn the_count_continues_after_its_file_was_lost_or_damaged() {
    let ws = TestWorkspace::new();
    for number in 1..=3 {
        ws.write("f", number.to_string());
        assert_eq!(ws.open().step(&request_of_session("s"), ws.now()).unwrap().step, number);
    }
    let file = ws.store().join("backtrail/steps");
    std::fs::write(&file, "no checksum\n").unwrap();
    ws.write("f", "4");
    assert_eq!(ws.open().step(&request_of_session("s"), ws.now()).unwrap().step, 4);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ws.open().step(&request_of_session("s"), ws.now()).unwrap().step, 5);
    assert_eq!(ws.open().step(&request_of_session("other"), ws.now()).unwrap().step, 1);
}

#[test]
fn the_file_of_counts_does_not_grow_without_limit() {
    let ws = TestWorkspace::new();
    let workspace = with_settings(&ws, |settings| settings.checkpoints.auto = false);
    let file = ws.store().join("backtrail/steps");
    let lines = || std::fs::read_to_string(&file).unwrap().lines().count();
    for number in 0..200 {
        workspace.step(&request_of_session(&format!("session {number}")), ws.now()).unwrap();
    }
    let full = lines();
    assert_eq!(full, 200);
    assert_eq!(workspace.step(&request_of_session("session 0"), ws.now()).unwrap().step, 2, "it is remembered");
    assert_eq!(workspace.step(&request_of_session("one more"), ws.now()).unwrap().step, 1);
    assert_eq!(lines(), full);
    assert_eq!(
        workspace.step(&request_of_session("session 0"), ws.now()).unwrap().step,
        3,
        "used recently, so it is kept"
    );
    assert_eq!(
        workspace.step(&request_of_session("session 1"), ws.now()).unwrap().step,
        1,
        "least recently used, so it was dropped"
    );
}

#[test]
fn changes_of_a_step_are_saved_without_counting_another_step() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "out/\n");
    let open = ws.open();
    let request = StepRequest { paths: vec![ws.workspace_path("out/new")], ..request_of_session("s") };
    assert_eq!(open.step(&request, ws.now()).unwrap().step, 1);
    assert!(open.step_done(&request, ws.now()).unwrap().is_none(), "nothing changed");
    ws.write("out/new", "made by the step");
    let saved = open.step_done(&request, ws.now()).unwrap().expect("the step made a file");
    assert_eq!((saved.checkpoint.kind, saved.checkpoint.origin.step), (Kind::Step, Some(1)));
    assert!(ws.paths_in_store(&saved.checkpoint.id).iter().any(|held| held == "out/new"));
    assert_eq!(open.step(&request_of_session("s"), ws.now()).unwrap().step, 2);

    ws.write("f", "more");
    let rarely = with_settings(&ws, |settings| settings.checkpoints.every_n_steps = 5);
    assert!(rarely.step_done(&request_of_session("s"), ws.now()).unwrap().is_none());
    let never = with_settings(&ws, |settings| settings.checkpoints.auto = false);
    assert!(never.step_done(&request_of_session("s"), ws.now()).unwrap().is_none());
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 2);
}

/// An agent may report the same step twice.
#[test]
fn a_step_that_may_be_a_duplicate_is_not_counted_again() {
    let ws = TestWorkspace::new();
    ws.write("f", "1");
    let again = || StepRequest { may_be_duplicate: true, ..request_of_session("s") };
    let number = |request: &StepRequest| ws.open().step(request, ws.now()).unwrap().step;
    assert_eq!((number(&request_of_session("s")), number(&request_of_session("s"))), (1, 2));
    ws.write("f", "2");
    let stepped = ws.open().step(&again(), ws.now()).unwrap();
    assert_eq!((stepped.step, stepped.saved.is_some()), (2, true), "the change is saved nonetheless");
    assert_eq!((number(&again()), number(&request_of_session("s"))), (2, 3));
}

/// A process that waits for the lock can't know in advance when it will get the lock, nor the metadata at that time.
#[test]
fn the_clock_is_read_under_the_lock_and_the_metadata_after_the_files() {
    let ws = TestWorkspace::new();
    ws.write("f", "1");
    ws.open().init(ws.now()).unwrap();
    let workspace = ws.open();
    let lock = std::fs::File::open(workspace.store_directory().join("backtrail/lock")).unwrap();
    lock.lock().unwrap();
    let is_lock_released = std::sync::atomic::AtomicBool::new(false);
    let clock = || {
        assert!(
            is_lock_released.load(std::sync::atomic::Ordering::SeqCst),
            "the clock was read before the lock was released"
        );
        "2026-01-02T03:04:05Z".parse().unwrap()
    };
    let metadata = || serde_json::from_str(r#"{"late": true}"#).unwrap();
    let request = StepRequest { metadata_once_read: Some(metadata), ..request_of_session("s") };
    let stepped = std::thread::scope(|scope| {
        let step = scope.spawn(|| workspace.step(&request, clock).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
        is_lock_released.store(true, std::sync::atomic::Ordering::SeqCst);
        drop(lock);
        step.join().unwrap()
    });
    let made = stepped.checkpoint().unwrap();
    assert_eq!((made.time.to_string().as_str(), &made.metadata["late"]), ("2026-01-02T03:04:05Z", &true.into()));
}
