//! `hook` where something comes between: workers that are late, that die, or that find no directory.

use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    hooks::{checkpoints, fed_in, hook, of_kind, recorded, said_of},
    place::Place,
};

/// Waits until something is there.
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

/// What `doctor` says of the agents, and whether it is content.
fn told_by_doctor(place: &Place) -> (bool, String) {
    let answer = place.json(["doctor"]);
    let agents = answer["checks"].as_array().unwrap().iter().find(|check| check["name"] == "agents").unwrap();
    (agents["ok"].as_bool().unwrap(), agents["detail"].as_str().unwrap().to_owned())
}

fn session_file(place: &Place) -> Option<PathBuf> {
    let files = fs::read_dir(place.path("home/backtrail/sessions")).ok()?.flatten().map(|file| file.path());
    files.into_iter().find(|file| file.extension().is_some_and(|extension| extension == "json"))
}

/// Starts a hook and lets it wait for the workspace.
fn start(place: &Place, payload: &Value) -> Child {
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    child
}

/// The process that works for this one.
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

/// A workspace that somebody holds, and an agent that is not kept waiting.
fn held() -> (Place, Vec<Value>, File) {
    let mut place = Place::saved();
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "300");
    let events = recorded(&place, "claude");
    let lock = place.hold_lock();
    (place, events, lock)
}

/// The checkpoint of the prompt came after that of the edit, held the edit, and had the time before it.
#[test]
fn late_hooks_work_in_the_order_of_their_arrival_and_say_that_they_are_late() {
    let (place, events, lock) = held();
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
    assert!(told_by_doctor(&place).1.contains("prompt: the checkpoint was taken late"), "{:?}", told_by_doctor(&place));
    let rewound = place.run(["rewind", "--turn", "2"]);
    let before = format!("backtrail restore {}", listed[0]["short_id"].as_str().unwrap());
    assert!(rewound.stderr.contains("taken late") && rewound.stderr.contains(&before), "{}", rewound.stderr);
}

#[test]
fn hooks_in_time_are_not_called_late() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    events[..2].iter().for_each(|event| hook(&place, "claude", event));
    assert!(checkpoints(&place).iter().all(|found| found["metadata"].get("late").is_none()));
    assert!(!place.ok(["list"]).contains("late"));
    assert!(!told_by_doctor(&place).1.contains("late"));
}

/// Nobody was told, and the same event was dropped when it came again.
#[test]
fn a_worker_that_is_killed_is_told_of_until_a_checkpoint_is_taken() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    let lock = place.hold_lock();
    let child = start(&place, &events[1]);
    await_some("session", || session_file(&place));
    kill(await_some("worker", || worker_of(child.id())));
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0));
    assert!(said.contains("not protected") && said.contains("signal: 9"), "{said}");
    assert!(log(&place).iter().any(|line| line["sort"] == "problem" && line["event"] == "prompt"));
    let (is_well, told) = told_by_doctor(&place);
    assert!(!is_well && told.contains("not protected: no checkpoint was taken for its last event"), "{told}");

    drop(lock);
    assert_eq!(said_of(&place, &events[1]), "");
    let turns = of_kind(&place, "turn");
    assert_eq!(turns.iter().map(|turn| &turn["turn"]).collect::<Vec<_>>(), [1], "it is the same prompt");
    assert!(told_by_doctor(&place).0, "{:?}", told_by_doctor(&place));
    assert_eq!(log(&place).len(), 1, "it is told once");
}

#[test]
fn a_worker_that_is_killed_when_nobody_waits_for_it_is_told_of_too() {
    let (place, events, lock) = held();
    hook(&place, "claude", &events[1]);
    let worker = log(&place)[0]["process"].as_u64().unwrap();
    kill(worker.try_into().unwrap());
    let told =
        await_some("word of doctor", || Some(told_by_doctor(&place)).filter(|told| told.1.contains("without a word")));
    assert!(!told.0 && told.1.contains("not protected:") && !told.1.contains("not protected yet"), "{}", told.1);
    drop(lock);
    place.write("hello.txt", "edited\n");
    hook(&place, "claude", &events[3]);
    assert_eq!(of_kind(&place, "step").len(), 1, "the dead keep nobody waiting");
    let problems = log(&place).into_iter().filter(|line| line["sort"] == "problem").count();
    assert_eq!((problems, told_by_doctor(&place).0), (1, true));
}

/// A second answer within seconds lost what was changed for it.
#[test]
fn what_is_said_twice_counts_where_something_changed_in_between() {
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
    assert_eq!((&steps[0]["step"], &steps[1]["step"]), (&json!(1), &json!(1)), "perhaps the same call");
    place.write("a.txt", "1\n");
    assert_eq!((count(stop, "step"), count(stop, "step")), (1, 0));
    place.write("a.txt", "2\n");
    assert_eq!(count(stop, "step"), 1);
}

/// Nobody was told.
#[test]
fn a_directory_that_is_gone_is_told_of() {
    let place = Place::saved();
    let events = recorded(&place, "claude");
    let mut gone = events[1].clone();
    gone["cwd"] = json!(place.path("not-there"));
    let said = said_of(&place, &gone);
    assert!(said.contains("not protected") && said.contains("not-there is not a directory"), "{said}");
    assert_eq!((said.lines().count(), log(&place).len()), (1, 1), "{said}");

    hook(&place, "claude", &events[1]);
    fs::rename(place.path("ws"), place.path("away")).unwrap();
    fs::create_dir(place.path("elsewhere")).unwrap();
    let said = fed_in(&place, "elsewhere", &events[2]);
    assert!(said.contains("not protected") && said.contains("ws is not a directory"), "{said}");
    fs::rename(place.path("away"), place.path("ws")).unwrap();
    let (is_well, told) = told_by_doctor(&place);
    assert!(!is_well && told.contains("not protected"), "{told}");
    place.write("a.txt", "changed\n");
    hook(&place, "claude", &events[2]);
    assert_eq!((of_kind(&place, "step").len(), told_by_doctor(&place).0), (1, true));
}
