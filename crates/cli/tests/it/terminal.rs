//! What is different where a person watches: colours and the pager.

use std::{
    fs::File,
    io::Read,
    os::fd::OwnedFd,
    process::{Command, ExitStatus, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::place::Place;

/// Runs the program with stdout on a terminal, and gives what that shows.
fn on_terminal(place: &Place, words: &[&str]) -> String {
    let (screen, terminal) = terminal();
    let mut command = place.command(&place.path("ws"), words);
    command.stdout(terminal).stderr(Stdio::null());
    let (shown, status) = watch(command, screen);
    assert!(status.success(), "{shown}");
    shown
}

/// Runs a program and gives what the screen shows until it ends.
fn watch(mut command: Command, mut screen: File) -> (String, ExitStatus) {
    let mut child = command.spawn().unwrap();
    // It holds the terminal open as long as it lives.
    drop(command);
    let mut shown = Vec::new();
    let mut piece = [0; 4096];
    // A terminal that nobody holds open gives an error instead of an end.
    while let Ok(count @ 1..) = screen.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
    }
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), child.wait().unwrap())
}

pub(crate) fn terminal() -> (File, OwnedFd) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    (File::from(screen), OwnedFd::from(terminal))
}

fn changed() -> Place {
    let mut place = Place::saved();
    place.write("a.txt", "one\n\x1b[2J\n");
    place.set("TERM", "xterm");
    place.set("BACKTRAIL_PAGER", "sed 's/^/paged: /'");
    place
}

#[test]
fn colours_only_where_they_are_seen_and_wanted() {
    let mut place = changed();
    assert!(on_terminal(&place, &["list"]).contains("\x1b[33m"));
    assert!(!on_terminal(&place, &["list", "--color", "never"]).contains('\x1b'));
    assert!(!place.ok(["list"]).contains('\x1b'));
    assert!(place.ok(["list", "--color", "always"]).contains("\x1b[33m"));
    place.set("NO_COLOR", "1");
    assert!(!on_terminal(&place, &["list"]).contains('\x1b'));
}

#[test]
fn long_answers_go_through_the_pager() {
    let mut place = changed();
    let shown = on_terminal(&place, &["diff", "--color", "never"]);
    assert!(shown.starts_with("paged: diff --git"), "{shown}");
    assert!(shown.contains("paged: +\\x1b[2J\n"), "a file's bytes reach the terminal raw: {shown:?}");
    assert!(on_terminal(&place, &["show", "@", "--color", "never"]).starts_with("paged: checkpoint"));
    assert!(!on_terminal(&place, &["list"]).contains("paged"));
    assert!(!on_terminal(&place, &["show", "@", "--json"]).contains("paged"));
    assert!(!place.ok(["diff"]).contains("paged"));
    place.set("PAGER", "sed 's/^/other: /'");
    place.unset("BACKTRAIL_PAGER");
    assert!(on_terminal(&place, &["diff", "--color", "never"]).starts_with("other: "));
}

#[test]
fn without_a_pager_the_answer_is_printed() {
    let mut place = changed();
    for pager in ["", "cat", "no-such-pager --really"] {
        place.set("BACKTRAIL_PAGER", pager);
        let shown = on_terminal(&place, &["diff", "--color", "never"]);
        assert!(shown.starts_with("diff --git"), "{pager:?}: {shown}");
    }
}

#[test]
fn stores_are_removed_on_a_terminal_only_after_a_yes() {
    let place = Place::saved();
    let gone = place.path("gone");
    let remake = || {
        std::fs::create_dir(&gone).unwrap();
        assert_eq!(place.run_in(&gone, ["save", "--allow-empty", "x"]).code, 0);
        std::fs::remove_dir(&gone).unwrap();
    };
    let answer = |text: &str, words: &[&str]| {
        use std::io::Write;
        let (mut screen, terminal) = terminal();
        let mut command = place.command(&place.path("ws"), words);
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
        screen.write_all(text.as_bytes()).unwrap();
        watch(command, screen).0
    };
    let count = || place.json(["workspaces"])["workspaces"].as_array().unwrap().len();
    remake();
    let shown = answer("n\n", &["workspaces", "--prune"]);
    assert!(shown.contains("these workspaces are gone:\n  ") && shown.contains("gone: 1 checkpoint"), "{shown}");
    assert!(
        shown.contains("remove 1 store, with all checkpoints? (y/n)") && shown.contains("nothing was removed"),
        "{shown}"
    );
    assert_eq!(count(), 2);
    assert!(answer("yes\n", &["workspaces", "--prune"]).contains("removed the store of"));
    assert_eq!(count(), 1);
    remake();
    assert!(!answer("", &["workspaces", "--prune", "--yes"]).contains("(y/n)"));
    assert_eq!(count(), 1);
    assert!(!answer("", &["workspaces", "--prune"]).contains("(y/n)"), "there is nothing to ask about");
}

/// Runs the program on a terminal of so many columns, with this typed in, and gives what that shows.
fn typed(place: &Place, columns: u16, text: &str, words: &[&str]) -> String {
    use std::io::Write;
    let (mut screen, terminal) = terminal();
    let size = rustix::termios::Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let mut command = place.command(&place.path("ws"), words);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    // With the end of input behind it: whoever asks once more than was answered ends there.
    screen.write_all(format!("{text}\x04").as_bytes()).unwrap();
    watch(command, screen).0
}

/// A row of old checkpoints went without a question, and there is no way back.
#[test]
fn old_checkpoints_are_deleted_on_a_terminal_only_after_a_yes() {
    let place = Place::saved();
    for number in 0..25 {
        place.ok(["save", "--allow-empty", &format!("number {number}")]);
    }
    let count = || place.json(["list"])["checkpoints"].as_array().unwrap().len();
    let words = ["delete", "--older-than", "0s"];
    let shown = typed(&place, 100, "n\n", &words);
    assert!(shown.contains("going to delete 25 checkpoints: 25 manual; taken "), "{shown}");
    assert!(shown.contains("for good? (y/n)") && shown.contains("nothing was deleted"), "{shown}");
    assert!(shown.contains("--dry-run"), "{shown}");
    assert_eq!(count(), 26);
    assert!(
        !typed(&place, 100, "", &["delete", "--older-than", "1d"]).contains("(y/n)"),
        "there is nothing to ask about"
    );
    assert!(!typed(&place, 100, "", &["delete", "--older-than", "0s", "--dry-run"]).contains("(y/n)"));
    assert_eq!(count(), 26);
    let shown = typed(&place, 100, "y\n", &words);
    assert!(shown.contains("deleted 25 checkpoints") && shown.contains("that is final"), "{shown}");
    assert_eq!(count(), 1);
    place.ok(["save", "--allow-empty", "one more"]);
    assert!(!typed(&place, 100, "", &["delete", "--older-than", "0s", "--yes"]).contains("(y/n)"));
    assert_eq!(count(), 1);
}

#[test]
fn the_choice_of_a_checkpoint_can_be_left() {
    let place = changed();
    for text in ["q\n", "\n", "1\nq\n"] {
        let shown = typed(&place, 100, text, &["restore"]);
        assert!(shown.contains("q to leave") && shown.contains("nothing was restored"), "{text:?}: {shown}");
        assert!(!shown.contains("error"), "{text:?}: {shown}");
    }
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"one\n\x1b[2J\n");
    assert!(typed(&place, 100, "1\ny\n", &["restore"]).contains("restored 1 path"));
}

#[test]
fn narrow_terminals_break_no_line_by_themselves() {
    let mut place = changed();
    place.unset("TERM");
    for number in 0..3 {
        place.write("a.txt", format!("{number}\n"));
        let message = format!("number {number}, said with many more words than a narrow terminal has room for");
        place.ok(["save", "--kind", "automatic", &message]);
    }
    place.user_settings("[retention]\nautomatic = 1\n");
    for words in [&["history", "a.txt"][..], &["prune", "--dry-run"], &["prune", "--dry-run", "--verbose"], &["list"]] {
        let words = words.iter().copied().chain(["--quiet"]).collect::<Vec<_>>();
        let shown = typed(&place, 60, "", &words);
        let width = |line: &str| line.chars().count();
        assert!(shown.lines().all(|line| width(line) <= 60), "{words:?}:\n{shown}");
        assert!(shown.lines().count() > 2, "{words:?}:\n{shown}");
    }
    let shown = typed(&place, 60, "", &["doctor", "--quiet"]);
    // What has no space in it, a path for one, is not broken.
    let is_word = |line: &str| line.trim().split(' ').count() <= 3;
    assert!(shown.lines().all(|line| line.chars().count() <= 60 || is_word(line)), "{shown}");
}

#[test]
fn who_waits_sees_progress() {
    let place = changed();
    let held = place.hold_lock();
    let saving = |words: &[&str]| {
        let (screen, terminal) = terminal();
        let mut command = place.command(&place.path("ws"), words);
        command.stdout(Stdio::null()).stderr(terminal);
        watch(command, screen).0
    };
    assert!(saving(&["save", "--wait", "1"]).contains("saving…"));
    assert!(!saving(&["save", "--wait", "1", "--quiet"]).contains("saving"));
    drop(held);
    assert_eq!(saving(&["save"]), "", "what takes no time needs no line");
}
