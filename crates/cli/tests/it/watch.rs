//! `watch`: one process for each workspace, and saves that stay right whatever happens to it.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::Place;

/// A watcher in the foreground. It ends with the test.
struct Foreground(Child);

impl Foreground {
    fn start(place: &Place, words: &[&str]) -> Self {
        let words = ["watch"].iter().chain(words);
        let mut child = place.command(&place.path("ws"), words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("watching "), "{line}");
        Self(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Ends the watcher in the background when a test ends, even by a panic.
struct Background<'p>(&'p Place);

impl Drop for Background<'_> {
    fn drop(&mut self) {
        self.0.run(["watch", "--stop"]);
    }
}

fn status(place: &Place) -> Value {
    place.json(["watch", "--status"])
}

/// Saves with the watcher, and checks that a full scan finds nothing that the checkpoint lacks.
#[track_caller]
fn save_is_exact(place: &mut Place) {
    place.ok(["save"]);
    place.set("BACKTRAIL_WATCH", "off");
    let left = place.json(["status"]);
    place.unset("BACKTRAIL_WATCH");
    assert_eq!(left["changes"], serde_json::json!([]), "found by a full scan after the save");
}

#[track_caller]
fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_met() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_watcher_in_the_foreground_reports_itself_and_ends_with_a_signal() {
    let mut place = Place::saved();
    assert_eq!(status(&place)["running"], false);
    assert_eq!(place.ok(["watch", "--stop"]), "no watcher is running\n");
    let mut watcher = Foreground::start(&place, &[]);
    let found = status(&place);
    assert_eq!(found["running"], true);
    assert_eq!(found["pid"], watcher.0.id());
    assert_eq!((&found["directories"], &found["auto"]), (&2.into(), &false.into()));
    place.write("dir/b.txt", "changed\n");
    wait_until("the change is pending", || status(&place)["pending"] == 1);
    save_is_exact(&mut place);
    let text = place.ok(["watch", "--status"]);
    assert!(text.contains("2 directories watched"), "{text}");
    let second = place.ok(["watch"]);
    assert_eq!(second, format!("a watcher is already running (process {})\n", watcher.0.id()));
    watcher.signal(Signal::TERM);
    assert!(watcher.0.wait().unwrap().success());
    assert_eq!(status(&place)["running"], false);
}

#[test]
fn a_watcher_in_the_background_ends_when_asked() {
    let place = Place::saved();
    let _end = Background(&place);
    let said = place.ok(["watch", "--detach"]);
    assert!(said.contains("in the background") && said.contains("backtrail watch --stop"), "{said}");
    let pid = status(&place)["pid"].as_u64().unwrap();
    assert!(said.contains(&format!("process {pid}")), "{said}");
    assert!(place.ok(["watch", "--detach"]).contains("already running"));
    assert_eq!(place.ok(["watch", "--stop"]), "the watcher has ended\n");
    assert_eq!(status(&place)["running"], false);
}

#[test]
fn of_many_watchers_that_start_at_once_one_runs() {
    let place = Place::saved();
    let _end = Background(&place);
    let start = || place.command(&place.path("ws"), ["watch", "--detach"]).stdout(Stdio::piped()).spawn().unwrap();
    let started: Vec<Child> = (0..16).map(|_| start()).collect();
    let mut said = Vec::new();
    for child in started {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    let first = said.iter().filter(|line| line.starts_with("watching ")).count();
    assert_eq!(first, 1, "{said:?}");
    assert_eq!(said.iter().filter(|line| line.contains("already running")).count(), 15, "{said:?}");
    assert_eq!(status(&place)["running"], true);
}

#[test]
fn a_save_does_not_wait_for_a_watcher_that_was_stopped() {
    let mut place = Place::saved();
    let watcher = Foreground::start(&place, &[]);
    save_is_exact(&mut place);
    watcher.signal(Signal::STOP);
    place.write("dir/b.txt", "while it was stopped\n");
    save_is_exact(&mut place);
    place.write("dir/new/c.txt", "while it was stopped\n");
    save_is_exact(&mut place);
    assert_eq!(place.json(["watch", "--status"])["running"], true, "it holds its place");
    watcher.signal(Signal::CONT);
    place.write("dir/new/c.txt", "after it went on\n");
    save_is_exact(&mut place);
    wait_until("the watcher answers", || status(&place)["directories"] == 3);
    place.write("dir/new/c.txt", "once more\n");
    save_is_exact(&mut place);
}

#[test]
fn a_killed_watcher_leaves_nothing_that_a_save_or_a_new_watcher_trips_over() {
    let mut place = Place::saved();
    let mut watcher = Foreground::start(&place, &[]);
    save_is_exact(&mut place);
    place.write("a.txt", "before the end\n");
    watcher.signal(Signal::KILL);
    watcher.0.wait().unwrap();
    save_is_exact(&mut place);
    assert_eq!(status(&place)["running"], false);
    place.write("dir/b.txt", "between\n");
    let _second = Foreground::start(&place, &[]);
    save_is_exact(&mut place);
    place.write("dir/b.txt", "after\n");
    save_is_exact(&mut place);
}

#[test]
fn a_full_scan_can_be_asked_for() {
    let place = Place::saved();
    let _watcher = Foreground::start(&place, &[]);
    place.ok(["save", "--allow-empty"]);
    // A link from outside, made after the last look, hides a write from the watcher.
    std::fs::hard_link(place.path("ws/a.txt"), place.path("link")).unwrap();
    std::fs::write(place.path("link"), "through another name\n").unwrap();
    assert_eq!(place.json(["save"])["created"], false, "this is what a watcher misses");
    assert_eq!(place.json(["save", "--full-scan"])["created"], true);
    assert_eq!(place.json(["status"])["changes"], serde_json::json!([]));
}

#[test]
fn a_try_scans_everything_before_its_command() {
    let place = Place::saved();
    let _watcher = Foreground::start(&place, &[]);
    place.ok(["save", "--allow-empty"]);
    std::fs::hard_link(place.path("ws/a.txt"), place.path("link")).unwrap();
    std::fs::write(place.path("link"), "through another name\n").unwrap();
    assert_eq!(place.run(["try", "--", "sh", "-c", "rm a.txt; false"]).code, 1);
    assert_eq!(std::fs::read_to_string(place.path("ws/a.txt")).unwrap(), "through another name\n");
}

#[test]
fn a_watcher_ends_when_its_workspace_is_moved() {
    let place = Place::saved();
    let mut watcher = Foreground::start(&place, &[]);
    std::fs::rename(place.path("ws"), place.path("moved")).unwrap();
    assert!(watcher.0.wait().unwrap().success());
}

#[test]
fn hooks_and_the_server_stay_right_beside_a_watcher() {
    let mut place = Place::saved();
    let _watcher = Foreground::start(&place, &[]);
    place.ok(["save", "--allow-empty"]);
    place.write("dir/b.txt", "an edit\n");
    assert_eq!(place.json(["step", "--session", "s"])["created"], true);
    place.write("dir/c.txt", "another\n");
    let changes = place.json(["diff"]);
    assert_eq!(changes["added_files"], serde_json::json!(["dir/c.txt"]));
    save_is_exact(&mut place);
}
