use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown, raw};

#[test]
fn content_is_printed_byte_for_byte() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    place.write("dir/binary", &bytes);
    place.ok(["save"]);
    place.remove("dir/binary");
    assert_eq!(place.run(["cat", "@", "dir/binary"]).stdout, bytes);
    assert_eq!(place.run(["cat", "@", "dir/binary", "--json"]).stdout, bytes);
    assert_eq!(place.run_in(&place.path("ws/dir"), ["cat", "@", "binary"]).stdout, bytes);
    assert_eq!(place.run(["cat", "@", place.path("ws/dir/binary").to_str().unwrap()]).stdout, bytes);
}

#[test]
fn names_that_are_not_utf8_are_found() {
    let place = Place::new();
    place.write(raw(b"x\xff"), "ff\n");
    place.write(raw(b"x\xfe"), "fe\n");
    place.ok(["save"]);
    assert_eq!(place.run([raw(b"cat"), raw(b"@"), raw(b"x\xfe")]).text(), "fe\n");
}

#[test]
fn attachments_are_printed() {
    let place = Place::new();
    fs::write(place.path("chat"), b"\0chat").unwrap();
    place.ok(["save", "--attach", "the chat=../chat"]);
    assert_eq!(place.run(["cat", "@", "--attachment", "the chat"]).stdout, b"\0chat");
    assert_shown!(
        place.run(["cat", "@", "--attachment", "other"]),
        str![[r#"
--- stderr
error: checkpoint [ID] has no attachment "other"
hint: see its attachments with: backtrail show [ID]
--- exit 3

"#]]
    );
}

#[test]
fn unknown_paths_and_checkpoints_are_refused() {
    let place = Place::saved();
    assert_shown!(
        place.run(["cat", "@", "no/such/file"]),
        str![[r#"
--- stderr
error: no/such/file is not in checkpoint [ID]
hint: paths are relative to the current directory
--- exit 3

"#]]
    );
    assert_shown!(
        place.run(["cat", "@"]),
        str![[r#"
--- stderr
error: the following required arguments were not provided: <PATH>
hint: usage: backtrail cat <ID> <PATH>
--- exit 2

"#]]
    );
    assert_eq!(place.run(["cat", "@", "a.txt", "--attachment", "x"]).code, 2);
    assert_eq!(place.run(["cat", "nonsense", "a.txt"]).code, 3);
    assert_eq!(place.run(["cat", "@", "dir"]).code, 2);
    assert_eq!(place.run(["cat", "@", "../home/x"]).code, 6);
}

#[test]
fn a_closed_pipe_ends_it_without_a_message() {
    use std::process::Stdio;
    let place = Place::new();
    place.write("large", vec![b'x'; 1 << 20]);
    place.ok(["save"]);
    let mut command = place.command(&place.path("ws"), ["cat", "@", "large"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stderr), (Some(141), Vec::new()));
}
