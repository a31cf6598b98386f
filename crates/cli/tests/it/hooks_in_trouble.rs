//! `hook` with late workers, killed workers and missing directories.

use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    hooks::{checkpoints, feed_in, hook, of_kind, recorded, stderr_of},
    place::Place,
};

/// Waits until `look` finds something, and returns it.
fn await_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.path("home/backtrail/log/hooks.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns whether the check `agents` of `doctor` passes, and its detail.
fn agents_check(place: &Place) -> (bool, String) {
    let answer = place.json(["doctor"]);
    let agents = answer["checks"].as_array().unwrap().iter().find(|check| check["name"] == "agents").unwrap();
    (agents["ok"].as_bool().unwrap(), agents["detail"].as_str().unwrap().to_owned())
}

fn session_file(place: &Place) -> Option<PathBuf> {
    let files = fs::read_dir(place.path("home/backtrail/sessions")).ok()?.flatten().map(|file| file.path());
    files.into_iter().find(|file| file.extension().is_some_and(|extension| extension == "json"))
}

/// Starts a hook without waiting for its end.
fn start(place: &Place, payload: &Value) -> Child {
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    child
}

/// Returns the id of the worker process that a hook process started.
fn worker_of(process: u32) -> Option<u32> {
    let is_worker = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(process)
    };
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).find(is_worker)
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process.try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

/// Returns a locked workspace whose hooks wait only briefly, the recorded events, and the lock.
fn locked_place() -> (Place, Vec<Value>, File) {
    let mut place = Place::saved();
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "300");
    let events = recorded(&place, "claude");
    let lock = place.hold_lock();
    (place, events, lock)
}

/// Regression: the checkpoint of the prompt was taken after the one of the edit. It held the edit, but had an earlier
/// time.
#[test]
fn late_hooks_work_in_order_and_their_checkpoints_are_marked_late() {
    let (place, events, lock) = locked_place();
    hook(&place, "claude", &events[1]);
    hook(&place, "claude", &events[2]);
    place.write("hello.txt", "edited\n");
    let edited = jiff::Timestamp::now();
    hook(&place, "claude", &events[3]);
    let mut next = events[1].clone();
    (next["prompt_id"], next["prompt"]) = (json!("2"), json!("and now this"));
    hook(&place, "claude", &next);
    place.write("hello.txt", "edited again\n");
    drop(lock);
    let done = || log(&place).iter().filter(|line| line["sort"] == "done").count();
    await_some("end of all four", || (done() == 4).then_some(()));

    let listed = checkpoints(&place);
    let turns: Vec<_> = listed.iter().skip(1).map(|found| (&found["kind"], &found["turn"])).collect();
    assert_eq!(turns, [(&json!("turn"), &json!(1)), (&json!("turn"), &json!(2))], "{listed:#?}");
    for late in &listed[1..] {
        assert_eq!(late["metadata"]["late"], true, "{late:#}");
        assert!(late["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() >= edited, "{late:#}");
    }
    assert!(place.ok(["list"]).contains("prompt 1  (late) create hello.txt"), "{}", place.ok(["list"]));
    assert!(place.ok(["show", "@"]).contains("taken late, after the agent had gone on"));
    assert!(agents_check(&place).1.contains("prompt: the checkpoint was taken late"), "{:?}", agents_check(&place));
    let rewound = place.run(["rewind", "--turn", "2"]);
    let before = format!("backtrail restore {}", listed[0]["short_id"].as_str().unwrap());
    assert!(rewound.stderr.contains("taken late") && rewound.stderr.contains(&before), "{}", rewound.stderr);
}

#[test]
fn checkpoints_in_time_are_not_marked_late() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    events[..2].iter().for_each(|event| hook(&place, "claude", event));
    assert!(checkpoints(&place).iter().all(|found| found["metadata"].get("late").is_none()));
    assert!(!place.ok(["list"]).contains("late"));
    assert!(!agents_check(&place).1.contains("late"));
}

/// Regression: a killed worker was not reported, and the same event was ignored when it was repeated.
#[test]
fn a_killed_worker_is_reported_until_a_checkpoint_is_taken() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    let lock = place.hold_lock();
    let child = start(&place, &events[1]);
    await_some("session", || session_file(&place));
    kill(await_some("worker", || worker_of(child.id())));
    let done = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0));
    assert!(stderr.contains("not protected") && stderr.contains("signal: 9"), "{stderr}");
    assert!(log(&place).iter().any(|line| line["sort"] == "problem" && line["event"] == "prompt"));
    let (is_ok, detail) = agents_check(&place);
    assert!(!is_ok && detail.contains("not protected: its last event got no checkpoint"), "{detail}");

    drop(lock);
    assert_eq!(stderr_of(&place, &events[1]), "");
    let turns = of_kind(&place, "turn");
    assert_eq!(
        turns.iter().map(|turn| &turn["turn"]).collect::<Vec<_>>(),
        [1],
        "the repeated event is the same prompt"
    );
    assert!(agents_check(&place).0, "{:?}", agents_check(&place));
    assert_eq!(log(&place).len(), 1, "reported a second time");
}

#[test]
fn a_worker_that_is_killed_after_its_hook_ended_is_reported() {
    let (place, events, lock) = locked_place();
    hook(&place, "claude", &events[1]);
    let worker = log(&place)[0]["process"].as_u64().unwrap();
    kill(worker.try_into().unwrap());
    let (is_ok, detail) = await_some("report of doctor", || {
        Some(agents_check(&place)).filter(|(_, detail)| detail.contains("without a word"))
    });
    assert!(!is_ok && detail.contains("not protected:") && !detail.contains("not protected yet"), "{detail}");
    drop(lock);
    place.write("hello.txt", "edited\n");
    hook(&place, "claude", &events[3]);
    assert_eq!(of_kind(&place, "step").len(), 1, "a dead worker does not block the queue");
    let problems = log(&place).into_iter().filter(|line| line["sort"] == "problem").count();
    assert_eq!((problems, agents_check(&place).0), (1, true));
}

/// Regression: an equal event within seconds was taken for a duplicate, and the changes in between were not saved.
#[test]
fn a_repeated_event_is_saved_if_files_changed_in_between() {
    let place = Place::saved();
    place.write(".gitignore", "private\n");
    place.write("private", "1\n");
    let events = recorded(&place, "claude");
    let mut prompt = events[1].clone();
    prompt.as_object_mut().unwrap().remove("prompt_id");
    let mut before = events[2].clone();
    before["tool_input"] = json!({ "file_path": place.path("ws/private"), "content": "x" });
    before.as_object_mut().unwrap().remove("tool_use_id");
    let stop = &events[5];
    assert_eq!(stop["hook_event_name"], "Stop");
    let count = |event: &Value, kind: &str| {
        let before = of_kind(&place, kind).len();
        hook(&place, "claude", event);
        of_kind(&place, kind).len() - before
    };
    assert_eq!((count(&prompt, "turn"), count(&prompt, "turn")), (1, 0));
    place.write("a.txt", "by hand\n");
    assert_eq!((count(&prompt, "turn"), count(&prompt, "turn")), (1, 0));
    assert_eq!(of_kind(&place, "turn").iter().map(|turn| &turn["turn"]).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((count(&before, "step"), count(&before, "step")), (1, 0));
    place.write("private", "2\n");
    assert_eq!((count(&before, "step"), count(&before, "step")), (1, 0));
    let steps = of_kind(&place, "step");
    assert_eq!(place.ok(["cat", steps[1]["id"].as_str().unwrap(), "private"]), "2\n");
    assert_eq!((&steps[0]["step"], &steps[1]["step"]), (&json!(1), &json!(1)), "the second event may be the same call");
    place.write("a.txt", "1\n");
    assert_eq!((count(stop, "step"), count(stop, "step")), (1, 0));
    place.write("a.txt", "2\n");
    assert_eq!(count(stop, "step"), 1);
}

/// Regression: a missing directory was not reported.
#[test]
fn a_missing_directory_is_reported() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    let mut gone = events[1].clone();
    gone["cwd"] = json!(place.path("not-there"));
    let stderr = stderr_of(&place, &gone);
    assert!(stderr.contains("not protected") && stderr.contains("not-there is not a directory"), "{stderr}");
    assert_eq!((stderr.lines().count(), log(&place).len()), (1, 1), "{stderr}");

    hook(&place, "claude", &events[1]);
    fs::rename(place.path("ws"), place.path("away")).unwrap();
    fs::create_dir(place.path("elsewhere")).unwrap();
    let stderr = feed_in(&place, "elsewhere", &events[2]);
    assert!(stderr.contains("not protected") && stderr.contains("ws is not a directory"), "{stderr}");
    fs::rename(place.path("away"), place.path("ws")).unwrap();
    let (is_ok, detail) = agents_check(&place);
    assert!(!is_ok && detail.contains("not protected"), "{detail}");
    place.write("a.txt", "changed\n");
    hook(&place, "claude", &events[2]);
    assert_eq!((of_kind(&place, "step").len(), agents_check(&place).0), (1, true));
}
