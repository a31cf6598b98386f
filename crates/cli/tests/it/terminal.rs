//! Behaviour on a terminal: colours, the pager, questions and progress.

use std::{
    fs::File,
    io::Read,
    os::fd::OwnedFd,
    process::{Command, ExitStatus, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::place::Place;

/// Runs the program with stdout on a terminal. Returns the text on the screen.
fn on_terminal(place: &Place, words: &[&str]) -> String {
    let (screen, terminal) = terminal();
    let mut command = place.command(&place.path("ws"), words);
    command.stdout(terminal).stderr(Stdio::null());
    let (shown, status) = run_until_end(command, screen);
    assert!(status.success(), "{shown}");
    shown
}

/// Runs a program until it ends. Returns the text on the screen, and the exit status.
pub(crate) fn run_until_end(mut command: Command, mut screen: File) -> (String, ExitStatus) {
    let mut child = command.spawn().unwrap();
    // The command holds the terminal open until it is dropped.
    drop(command);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // If no process holds the terminal open, reading fails instead of reaching the end.
    while let Ok(count @ 1..) = screen.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), child.wait().unwrap())
}

/// Opens a terminal. Returns its screen, and the end that a program uses.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    (File::from(screen), OwnedFd::from(terminal))
}

/// Returns a workspace with a checkpoint, an unsaved escape sequence in `a.txt`, and a pager.
fn changed_place() -> Place {
    let mut place = Place::saved();
    place.write("a.txt", "one\n\x1b[2J\n");
    place.set("TERM", "xterm");
    place.set("BACKTRAIL_PAGER", "sed 's/^/paged: /'");
    place
}

#[test]
fn colours_are_used_on_a_terminal_unless_switched_off() {
    let mut place = changed_place();
    assert!(on_terminal(&place, &["list"]).contains("\x1b[33m"));
    assert!(!on_terminal(&place, &["list", "--color", "never"]).contains('\x1b'));
    assert!(!place.ok(["list"]).contains('\x1b'));
    assert!(place.ok(["list", "--color", "always"]).contains("\x1b[33m"));
    place.set("NO_COLOR", "1");
    assert!(!on_terminal(&place, &["list"]).contains('\x1b'));
}

#[test]
fn diff_and_show_use_the_pager() {
    let mut place = changed_place();
    let shown = on_terminal(&place, &["diff", "--color", "never"]);
    assert!(shown.starts_with("paged: diff --git"), "{shown}");
    assert!(shown.contains("paged: +\\x1b[2J\n"), "the bytes of a file are escaped on a terminal: {shown:?}");
    assert!(on_terminal(&place, &["show", "@", "--color", "never"]).starts_with("paged: checkpoint"));
    assert!(!on_terminal(&place, &["list"]).contains("paged"));
    assert!(!on_terminal(&place, &["show", "@", "--json"]).contains("paged"));
    assert!(!place.ok(["diff"]).contains("paged"));
    place.set("PAGER", "sed 's/^/other: /'");
    place.unset("BACKTRAIL_PAGER");
    assert!(on_terminal(&place, &["diff", "--color", "never"]).starts_with("other: "));
}

#[test]
fn without_a_pager_the_output_is_printed() {
    let mut place = changed_place();
    for pager in ["", "cat", "no-such-pager --really"] {
        place.set("BACKTRAIL_PAGER", pager);
        let shown = on_terminal(&place, &["diff", "--color", "never"]);
        assert!(shown.starts_with("diff --git"), "{pager:?}: {shown}");
    }
}

#[test]
fn removing_stores_needs_confirmation_on_a_terminal() {
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
        run_until_end(command, screen).0
    };
    let count = || place.json(["workspaces"])["workspaces"].as_array().unwrap().len();
    remake();
    let shown = answer("n\n", &["workspaces", "--prune"]);
    assert!(shown.contains("these workspaces are gone:\n  ") && shown.contains("gone: 1 checkpoint"), "{shown}");
    assert!(
        shown.contains("remove 1 store with all checkpoints? (y/n)") && shown.contains("nothing was removed"),
        "{shown}"
    );
    assert_eq!(count(), 2);
    assert!(answer("yes\n", &["workspaces", "--prune"]).contains("removed the store of"));
    assert_eq!(count(), 1);
    remake();
    assert!(!answer("", &["workspaces", "--prune", "--yes"]).contains("(y/n)"));
    assert_eq!(count(), 1);
    assert!(!answer("", &["workspaces", "--prune"]).contains("(y/n)"), "there is nothing to confirm");
}

/// Runs the program on a terminal with this number of columns, and types `text`. Returns the text on the screen.
pub(crate) fn run_with_input(place: &Place, columns: u16, text: &str, words: &[&str]) -> String {
    use std::io::Write;
    let (mut screen, terminal) = terminal();
    let size = rustix::termios::Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let mut command = place.command(&place.path("ws"), words);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    // The end of input follows, so that the program ends if it asks more questions than the text answers.
    screen.write_all(format!("{text}\x04").as_bytes()).unwrap();
    run_until_end(command, screen).0
}

/// Regression: old checkpoints were deleted without a question, although a deletion could not be undone.
#[test]
fn deleting_old_checkpoints_needs_confirmation_on_a_terminal() {
    let place = Place::saved();
    for number in 0..25 {
        place.ok(["save", "--allow-empty", &format!("number {number}")]);
    }
    let count = || place.json(["list"])["checkpoints"].as_array().unwrap().len();
    let words = ["delete", "--older-than", "0s"];
    let shown = run_with_input(&place, 100, "n\n", &words);
    assert!(shown.contains("going to delete 25 checkpoints: 25 manual; taken "), "{shown}");
    assert!(shown.contains("delete 25 checkpoints? (y/n)") && shown.contains("nothing was deleted"), "{shown}");
    assert!(shown.contains("--dry-run"), "{shown}");
    assert_eq!(count(), 26);
    assert!(
        !run_with_input(&place, 100, "", &["delete", "--older-than", "1d"]).contains("(y/n)"),
        "there is nothing to confirm"
    );
    assert!(!run_with_input(&place, 100, "", &["delete", "--older-than", "0s", "--dry-run"]).contains("(y/n)"));
    assert_eq!(count(), 26);
    let shown = run_with_input(&place, 100, "y\n", &words);
    assert!(shown.contains("deleted 25 checkpoints") && shown.contains("take it back with: backtrail undo"), "{shown}");
    assert_eq!(count(), 1);
    place.ok(["save", "--allow-empty", "one more"]);
    assert!(!run_with_input(&place, 100, "", &["delete", "--older-than", "0s", "--yes"]).contains("(y/n)"));
    assert_eq!(count(), 1);
}

#[test]
fn the_choice_of_a_checkpoint_can_be_cancelled() {
    let place = changed_place();
    for text in ["q\n", "\n", "1\nq\n"] {
        let shown = run_with_input(&place, 100, text, &["restore"]);
        assert!(shown.contains("q to quit") && shown.contains("nothing was restored"), "{text:?}: {shown}");
        assert!(!shown.contains("error"), "{text:?}: {shown}");
    }
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"one\n\x1b[2J\n");
    assert!(run_with_input(&place, 100, "1\ny\n", &["restore"]).contains("restored 1 path"));
}

#[test]
fn lines_fit_into_a_narrow_terminal() {
    let mut place = changed_place();
    place.unset("TERM");
    for number in 0..3 {
        place.write("a.txt", format!("{number}\n"));
        let message = format!("number {number}, said with many more words than a narrow terminal has room for");
        place.ok(["save", "--kind", "automatic", &message]);
    }
    place.user_settings("[retention]\nautomatic = 1\n");
    for words in [&["history", "a.txt"][..], &["prune", "--dry-run"], &["prune", "--dry-run", "--verbose"], &["list"]] {
        let words = words.iter().copied().chain(["--quiet"]).collect::<Vec<_>>();
        let shown = run_with_input(&place, 60, "", &words);
        let width = |line: &str| line.chars().count();
        assert!(shown.lines().all(|line| width(line) <= 60), "{words:?}:\n{shown}");
        assert!(shown.lines().count() > 2, "{words:?}:\n{shown}");
    }
    let shown = run_with_input(&place, 60, "", &["doctor", "--quiet"]);
    // Text without a space, for example a path, is not wrapped.
    let is_word = |line: &str| line.trim().split(' ').count() <= 3;
    assert!(shown.lines().all(|line| line.chars().count() <= 60 || is_word(line)), "{shown}");
}

#[test]
fn progress_is_shown_while_a_save_waits() {
    let place = changed_place();
    let held = place.hold_lock();
    let saving = |words: &[&str]| {
        let (screen, terminal) = terminal();
        let mut command = place.command(&place.path("ws"), words);
        command.stdout(Stdio::null()).stderr(terminal);
        run_until_end(command, screen).0
    };
    assert!(saving(&["save", "--wait", "1"]).contains("saving…"));
    assert!(!saving(&["save", "--wait", "1", "--quiet"]).contains("saving"));
    drop(held);
    assert_eq!(saving(&["save"]), "", "a fast save shows no progress");
}
