//! Limits that a front end can set on output: hidden precious contents, the size of a patch, pages of the timeline.

use backtrail::{ListFilter, PatchLimits, Precious, SaveRequest, Scope};
use backtrail_testkit::TestWorkspace;

#[test]
fn a_patch_hides_the_contents_of_precious_paths() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", ".env\n");
    ws.write(".env", "TOKEN=first-secret\n");
    ws.write("a.txt", "one\n");
    ws.save();
    ws.write(".env", "TOKEN=second-secret\n");
    ws.write("a.txt", "two\n");
    let second = ws.save();
    ws.remove(".env");
    let precious = Precious::of([]);
    let limits = PatchLimits { hide: Some(&precious), max_bytes: None, ..PatchLimits::default() };
    let stored = ws.open().diff_of(&second.id, &Scope::Whole, &limits).unwrap();
    let on_disk = ws.open().diff_within(second.parent, None, &Scope::Whole, &limits).unwrap();
    for diff in [stored, on_disk] {
        assert!(diff.patch.contains("+two"), "{}", diff.patch);
        assert!(!diff.patch.contains("secret") && !diff.patch.contains(".env"), "{}", diff.patch);
        assert_eq!(diff.hidden, [ws.workspace_path(".env")]);
        assert_eq!(diff.changes.len(), 2, "the path itself is reported");
        assert!(!diff.is_cut);
    }
}

#[test]
fn a_truncated_patch_ends_with_a_whole_line() {
    let ws = TestWorkspace::new();
    ws.write("a", "x\n");
    ws.save();
    ws.write("a", "line ä\n".repeat(1_000));
    ws.write("b", [0_u8, 1, 2, 3]);
    ws.write("c", "never reached\n");
    let at_most = |max_bytes| {
        let limits = PatchLimits { hide: None, max_bytes: Some(max_bytes), ..PatchLimits::default() };
        ws.open().diff_within(ws.open().current().unwrap(), None, &Scope::Whole, &limits).unwrap()
    };
    for max_bytes in [0, 1, 700, 701, 702, 703, 704] {
        let diff = at_most(max_bytes);
        assert!(diff.is_cut && diff.patch.len() <= max_bytes, "{max_bytes}: {}", diff.patch.len());
        assert!(diff.patch.is_empty() || diff.patch.ends_with('\n'));
        assert!(!diff.patch.contains("never reached"));
        assert_eq!(diff.changes.len(), 3);
    }
    let whole = at_most(1 << 20);
    assert!(!whole.is_cut && whole.patch.contains("never reached"));
    assert!(whole.patch.contains("Binary files a/b and b/b differ") && !whole.patch.contains("GIT binary patch"));
}

#[test]
fn the_changes_of_a_checkpoint_stay_known_after_its_parent_is_deleted() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    ws.write("b", "between\n");
    let between = ws.save();
    ws.write("a", "2\n");
    let last = ws.save();
    let patch = || ws.open().diff_of(&last.id, &Scope::Whole, &PatchLimits::default()).unwrap().patch;
    let before = patch();
    assert!(before.contains("+2") && !before.contains("between"));
    ws.open().delete(&[between.id], false, ws.now()).unwrap();
    assert_eq!(patch(), before);
}

#[test]
fn pages_of_the_timeline_list_every_checkpoint_once() {
    let ws = TestWorkspace::new();
    let save = |number: u64| {
        ws.write("a", number.to_string());
        ws.save_with(&SaveRequest::default()).checkpoint
    };
    let mut all: Vec<_> = (0..7).map(save).map(|checkpoint| checkpoint.id).collect();
    all.reverse();
    let (mut paged, mut before_sequence) = (Vec::new(), None);
    loop {
        let filter = ListFilter { limit: Some(3), before_sequence, ..ListFilter::default() };
        let page = ws.open().list(&filter).unwrap();
        let Some(last) = page.last() else { break };
        before_sequence = Some(last.sequence);
        paged.extend(page.iter().map(|checkpoint| checkpoint.id));
    }
    assert_eq!(paged, all);
}
