//! `try` rolls back the changes of a failing command, whatever the reason of the failure.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use snapbox::str;

use crate::{
    place::{DEFAULT_SIGNALS, Place, Run, WAIT_FOR_THE_LOCK, assert_shown},
    terminal::terminal,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_backtrail");

/// Runs `try --json` on a shell script. Returns the run and its answer, which must be the last line of stdout.
fn run_try(place: &Place, options: &[&str], script: &str) -> (Run, serde_json::Value) {
    let words = ["try", "--json"].into_iter().chain(options.iter().copied()).chain(["--", "sh", "-c", script]);
    let run = place.run(words);
    let answer = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    (run, answer)
}

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read_to_string(place.path("ws").join(name)).ok()
}

fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} was never created", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts `try` on a shell script, and waits until the script creates the file `ready`.
fn start(place: &Place, script: &str) -> Child {
    let mut command = place.command_with_default_signals(["try", "--json", "--", "sh", "-c", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&place.path("ws/ready"));
    child
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

/// Waits for the end of `try`. Returns its exit status and its answer.
fn answer_of(child: Child) -> (i32, serde_json::Value) {
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code().expect("not killed by a signal"),
        serde_json::from_str(stdout.lines().last().unwrap()).unwrap(),
    )
}

#[test]
fn messages_go_to_stderr_and_stdout_belongs_to_the_command() {
    let place = Place::saved();
    assert_shown!(
        place.run(["try", "--", "sh", "-c", "echo said; echo more >> a.txt; touch new; exit 3"]),
        str![[r#"
said
--- stderr
checkpoint [ID]; should this be killed, go back with: backtrail restore [ID]
warning: sh exited with 3
rolled back: 1 modified, 1 deleted; bring it back with: backtrail undo
--- exit 3

"#]]
    );
    assert_shown!(
        place.run(["try", "--", "sh", "-c", "echo more >> a.txt"]),
        str![[r#"
--- stderr
checkpoint [ID]; should this be killed, go back with: backtrail restore [ID]
--- exit 0

"#]]
    );
    let made = place.json(["list", "--kind", "automatic"]);
    assert_eq!(made["checkpoints"][0]["message"], r#"before: sh -c "echo more >> a.txt""#);
    assert_eq!(made["checkpoints"][0]["pinned"], false);
}

/// A caller that reads only the answer must see that the rollback is incomplete.
#[test]
fn json_lists_the_conflicts_of_a_rollback() {
    let place = Place::saved();
    let (run, answer) = run_try(&place, &[], "rm a.txt; mkfifo a.txt; echo x > dir/b.txt; exit 5");
    assert_eq!((run.code, &answer["rolled_back"]), (5, &true.into()));
    let conflicts = answer["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1, "{answer}");
    assert_eq!(conflicts[0]["path"], "a.txt");
    assert_eq!(read(&place, "dir/b.txt").as_deref(), Some("b\n"));
    place.remove("a.txt");
    place.write("a.txt", "one\n");
    let (_, answer) = run_try(&place, &[], "echo x > a.txt; exit 5");
    assert_eq!(answer.get("conflicts"), None, "{answer}");
}

/// Regression: `try` exited with the status of the restore and the hint to try again. A second run took the bad files
/// as its base. The output did not say that the checkpoint stays pinned.
#[test]
fn a_failed_rollback_keeps_the_exit_status_and_names_the_checkpoint() {
    let place = Place::saved();
    let script = format!("echo bad > a.txt; {WAIT_FOR_THE_LOCK}; exit 5");
    let run = place.run_while_locked(["--wait", "0", "--json", "try", "--", "sh", "-c", &script]);
    let answer: serde_json::Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    assert_eq!((run.code, &answer["exit_code"], &answer["rolled_back"]), (5, &5.into(), &false.into()));
    let id = answer["checkpoint"].as_str().unwrap();
    let short = &id[..8];
    let hint = format!("take it back with: backtrail restore {short}");
    assert_eq!(
        (&answer["rollback_error"]["code"], &answer["rollback_error"]["hint"]),
        (&"busy".into(), &hint.clone().into())
    );
    let stderr = run.stderr;
    assert!(
        stderr.lines().any(|line| line.starts_with("error: not rolled back: ") && line.ends_with(&hint)),
        "{stderr}"
    );
    assert!(stderr.ends_with(&format!("backtrail unpin {short}\n")) && !stderr.contains("try again"), "{stderr}");
    assert_eq!(read(&place, "a.txt").as_deref(), Some("bad\n"));
    place.ok(["prune"]);
    assert_eq!(place.json(["show", id])["checkpoint"]["pinned"], true, "the checkpoint is still needed");
    place.ok(["restore", id]);
    assert_eq!((read(&place, "a.txt").as_deref(), read(&place, "ready")), (Some("one\ntwo\n"), None));
    place.ok(["unpin", id]);
}

#[test]
fn the_answer_is_on_its_own_line() {
    let place = Place::saved();
    let (run, answer) = run_try(&place, &[], "printf 'no newline'");
    assert!(run.text().starts_with("no newline\n{"), "{}", run.text());
    let keys = ["checkpoint", "exit_code", "rolled_back", "dropped", "not_taken_back"];
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), keys);
}

#[test]
fn a_command_that_cannot_be_started_exits_with_127() {
    let place = Place::saved();
    place.write("text", "not a program\n");
    for command in ["no-such-program-anywhere", "./text"] {
        let run = place.run(["try", "--json", "--", command]);
        assert_eq!(run.code, 127, "{}", run.shown());
        assert!(run.stderr.contains(&format!("error: {command} ")), "{}", run.stderr);
        let answer: serde_json::Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
        assert_eq!((&answer["exit_code"], &answer["rolled_back"]), (&127.into(), &false.into()));
    }
}

#[test]
fn a_command_that_deletes_the_workspace_is_rolled_back() {
    let place = Place::saved();
    let before = read(&place, "a.txt");
    assert!(before.is_some());
    let (run, answer) = run_try(&place, &[], "rm -rf \"$PWD\"; exit 5");
    assert_eq!((run.code, &answer["rolled_back"]), (5, &serde_json::Value::Bool(true)));
    assert_eq!(read(&place, "a.txt"), before);
}

#[test]
fn a_command_killed_by_a_signal_is_rolled_back() {
    let place = Place::saved();
    let (run, answer) = run_try(&place, &[], "echo 2 > a.txt; kill -KILL $$");
    assert_eq!((run.code, &answer["exit_code"], &answer["rolled_back"]), (137, &137.into(), &true.into()));
    assert!(run.stderr.contains("SIGKILL"), "{}", run.stderr);
    assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_failed_check_rolls_back_a_successful_command() {
    let place = Place::saved();
    let (run, answer) = run_try(&place, &["--check", "exit 42"], "echo 2 > a.txt");
    assert_eq!((run.code, &answer["exit_code"], &answer["rolled_back"]), (1, &1.into(), &true.into()));
    assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"));
    let (run, _) = run_try(&place, &["--check", "kill -TERM $$"], "echo 2 > a.txt");
    assert_eq!(run.code, 1);
    let (run, _) = run_try(&place, &["--check", "touch checked"], "exit 6");
    assert_eq!((run.code, read(&place, "checked")), (6, None), "a failed command needs no check");
    let (run, answer) = run_try(&place, &["--check", "grep -q 2 a.txt"], "echo 2 > a.txt");
    assert_eq!((run.code, &answer["rolled_back"]), (0, &false.into()));
    let (run, _) = run_try(&place, &["--timeout", "0.5", "--check", "sleep 60"], "true");
    assert_eq!(run.code, 124, "the check has no more time than the command");
}

#[test]
fn a_timeout_kills_every_process_of_the_command() {
    let place = Place::saved();
    let script = "trap '' TERM; (trap '' TERM; while :; do date +%s%N > beat; done) & echo $! > pid; wait";
    let began = Instant::now();
    let (run, answer) = run_try(&place, &["--timeout", "300ms"], script);
    assert_eq!((run.code, &answer["rolled_back"]), (2, &serde_json::Value::Null), "ms is not a unit: {}", run.shown());
    let (run, answer) = run_try(&place, &["--timeout", "1"], script);
    assert!(began.elapsed() < Duration::from_secs(40));
    assert_eq!((run.code, &answer["exit_code"], &answer["rolled_back"]), (124, &124.into(), &true.into()));
    assert_eq!((read(&place, "beat"), read(&place, "pid")), (None, None), "no process of the command is left");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(read(&place, "beat"), None);
}

#[test]
fn signals_are_passed_on_and_the_command_is_rolled_back() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::QUIT, "QUIT")] {
        let place = Place::saved();
        // A shell keeps ignoring the signals that its parent ignored, so this shell must set the trap itself.
        let script = format!("trap 'exit 9' {name}; echo 2 > a.txt; : > ready; while :; do sleep 0.05; done");
        let child = start(&place, &script);
        send_signal(&child, signal);
        let (code, answer) = answer_of(child);
        assert_eq!((code, &answer["rolled_back"]), (9, &true.into()), "{name}");
        assert_eq!((read(&place, "a.txt").as_deref(), read(&place, "ready")), (Some("one\ntwo\n"), None), "{name}");
    }
}

#[test]
fn a_killed_try_leaves_its_checkpoint() {
    let place = Place::saved();
    let mut child = start(&place, "echo 2 > a.txt; echo $$ > ready; exec sleep 60");
    send_signal(&child, Signal::KILL);
    let mut message = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut message).unwrap();
    child.wait().unwrap();
    let left: i32 = read(&place, "ready").unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    let id = message.trim_end().rsplit(' ').next().unwrap();
    assert!(message.ends_with(&format!("backtrail restore {id}\n")), "{message}");
    place.ok(["restore", id]);
    assert_eq!((read(&place, "a.txt").as_deref(), read(&place, "ready")), (Some("one\ntwo\n"), None));
}

/// Regression: the pin of a killed `try` was never removed, so each of them left a checkpoint in the store forever.
#[test]
fn the_pin_of_a_killed_try_is_removed_unless_the_user_pinned_it() {
    let place = Place::saved();
    let kill_a_try = || {
        let mut child = start(&place, "echo $$ > ready; exec sleep 60");
        send_signal(&child, Signal::KILL);
        child.wait().unwrap();
        let left: i32 = read(&place, "ready").unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
        place.remove("ready");
        place.id("latest")
    };
    let is_pinned = |id: &str| place.json(["show", id])["checkpoint"]["pinned"] == true;
    let (first, wanted) = (kill_a_try(), kill_a_try());
    place.ok(["pin", &wanted]);
    assert!(is_pinned(&first) && is_pinned(&wanted));
    // A running `try` keeps its own pin.
    let (id, own) =
        (&first[..8], format!("{PROGRAM} prune && {PROGRAM} show --json latest | grep -q 'pinned\": *true'"));
    let run = place.run(["try", "--", "sh", "-c", &own]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stderr.contains(&format!("checkpoint {id} is no longer pinned")), "{}", run.stderr);
    assert!(!is_pinned(&first) && is_pinned(&wanted) && !is_pinned("latest"));
    let third = kill_a_try();
    let run = place.run(["try", "--", "false"]);
    assert!(!is_pinned(&third) && is_pinned(&wanted), "{}", run.shown());
    assert_eq!(fs::read_dir(place.path("home/backtrail/tries")).unwrap().count(), 0);
}

#[test]
fn no_lock_is_held_and_the_checkpoint_is_not_pruned() {
    let place = Place::saved();
    let script =
        format!("for n in 1 2 3 4 5 6 7; do echo $n > a.txt; {PROGRAM} --wait 5 try -- true || exit 50; done; exit 8");
    let (run, answer) = run_try(&place, &[], &script);
    assert_eq!((run.code, &answer["rolled_back"]), (8, &true.into()), "{}", run.shown());
    assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_protected_directory_is_refused_before_the_command_runs() {
    let place = Place::new();
    let run = place.run_in(&place.path("home"), ["try", "--", "touch", "ran"]);
    assert_eq!(run.code, 6, "{}", run.shown());
    assert!(!place.path("home/ran").exists());
}

#[test]
fn the_command_inherits_the_resource_limits() {
    let place = Place::saved();
    let script = format!("ulimit -S -n 256; {PROGRAM} try -q -- sh -c 'ulimit -S -n'");
    let mut command = Command::new("sh");
    let mut own = place.command(&place.path("ws"), ["x"]);
    command.args(["-c", &script]).current_dir(place.path("ws")).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    own.stdin(Stdio::null());
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), "256\n");
}

/// Beyond `ulimit -f` the kernel kills a process, unless it ignores the signal and handles the error, as this program
/// does. The command is killed as usual.
#[test]
fn a_file_size_limit_kills_the_command_but_not_this_program() {
    let place = Place::saved();
    let limited = |words: &str| {
        let mut command = Command::new("sh");
        let own = place.command(&place.path("ws"), ["x"]);
        command
            .args(["-c", &format!("ulimit -f 16; exec {PROGRAM} {words}")])
            .current_dir(place.path("ws"))
            .env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        command.output().unwrap()
    };
    let tried = limited("try -q -- dd if=/dev/zero of=out bs=1000 count=100");
    assert_eq!(tried.status.code(), Some(128 + 25), "{tried:?}");
    assert!(!place.path("ws/out").exists(), "the command is rolled back");
    let mut noise = 1u64;
    let mut byte = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 56) as u8
    };
    place.write("large", (0..100_000).map(|_| byte()).collect::<Vec<_>>());
    let saved = limited("save --json");
    let answer: serde_json::Value = serde_json::from_slice(&saved.stdout).unwrap_or_else(|_| panic!("{saved:?}"));
    assert_eq!((saved.status.code(), &answer["error"]["code"]), (Some(1), &"no_space".into()), "{answer}");
    assert!(answer["error"]["hint"].as_str().is_some_and(|hint| hint.contains("ulimit -f")), "{answer}");
    place.remove("a.txt");
    place.ok(["save", "without the limit"]);
    place.ok(["verify"]);
    place.write("large", "");
    let restored = limited("restore --json @");
    assert_eq!(restored.status.code(), Some(1), "{restored:?}");
    assert_eq!(std::fs::read(place.path("ws/large")).unwrap(), b"", "nothing was written");
    place.ok(["restore", "@"]);
    assert_eq!(std::fs::metadata(place.path("ws/large")).unwrap().len(), 100_000);
}

/// Runs `try` on a terminal of its own, and types at it. Returns the text on the screen, and the exit status.
fn at_terminal(place: &Place, script: &str, typed: &[u8]) -> (String, i32) {
    let (mut screen, line) = terminal();
    let mut command = Command::new("setsid");
    let own = place.command(&place.path("ws"), ["x"]);
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .args(["--ctty", "--wait", "env", DEFAULT_SIGNALS, PROGRAM, "try", "--", "sh", "-c", script])
        .current_dir(place.path("ws"));
    command.stdin(line.try_clone().unwrap()).stdout(line.try_clone().unwrap()).stderr(line);
    let mut child = command.spawn().unwrap();
    drop(command);
    wait_for(&place.path("ws/ready"));
    screen.write_all(typed).unwrap();
    let mut shown = String::new();
    let mut reader: File = screen.try_clone().unwrap();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    (shown, child.wait().unwrap().code().unwrap())
}

#[test]
fn an_interrupt_at_the_terminal_reaches_the_command_once() {
    let place = Place::saved();
    let script = "trap 'echo interrupted >> ../count' INT; echo 2 > a.txt; : > ready; \
                  for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit 4";
    let (shown, code) = at_terminal(&place, script, b"\x03");
    assert_eq!(code, 4, "{shown}");
    assert_eq!(fs::read_to_string(place.path("count")).unwrap(), "interrupted\n");
    assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"), "{shown}");
}

#[test]
fn the_command_can_read_from_the_terminal() {
    let place = Place::saved();
    let (shown, code) = at_terminal(&place, ": > ready; read word; echo \"heard $word\"", b"hello\n");
    assert!(code == 0 && shown.contains("heard hello"), "{code}: {shown}");
}

#[test]
fn the_command_inherits_the_signal_settings() {
    let place = Place::saved();
    let show = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let plain = place.command_with_default_signals(["try", "-q", "--", "sh", "-c", show]).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    let without = Command::new("env").args([DEFAULT_SIGNALS, "sh", "-c", show]).output().unwrap();
    assert_eq!(plain, String::from_utf8(without.stdout).unwrap());
    let mut command = Command::new("env");
    command.args([DEFAULT_SIGNALS, "sh"]);
    let own = place.command(&place.path("ws"), ["x"]);
    command.args(["-c", &format!("trap '' HUP; exec {PROGRAM} try -q -- sh -c \"{show}\"")]);
    command.current_dir(place.path("ws")).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ignoring = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(plain.ends_with("0\n") && ignoring.ends_with("1\n"), "what nohup ignores stays ignored: {ignoring}");
}

/// Regression: after an incomplete rollback the automatic checkpoint was pruned, although it held the only copy of
/// unsaved work.
#[test]
fn the_checkpoint_of_an_incomplete_rollback_stays_pinned() {
    let place = Place::new();
    place.write("b", "0\n");
    place.write("s", "the only copy\n");
    let run = place.run(["try", "--", "sh", "-c", "rm s; mkfifo s; exit 2"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stderr.contains("stays pinned"), "{}", run.stderr);
    let id = place.id("@");
    for number in 0..7 {
        place.write("b", format!("{number}\n"));
        place.run(["try", "--", "false"]);
    }
    place.ok(["prune"]);
    place.remove("s");
    place.ok(["restore", &id, "s"]);
    assert_eq!(std::fs::read_to_string(place.path("ws/s")).unwrap(), "the only copy\n");
}
