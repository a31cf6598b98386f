//! Addresses of checkpoints, such as `@~2`, `step:7` and `ago:10m`.

use backtrail::{
    Checkpoint, CheckpointId, Error, ErrorCode, Kind, ListFilter, Origin, Range, RestoreRequest, SaveRequest,
};
use backtrail_testkit::{TestWorkspace, git_output_with};
use jiff::{Timestamp, Zoned, tz::TimeZone};

fn zoned(moment: Timestamp) -> Zoned {
    moment.to_zoned(TimeZone::fixed(jiff::tz::offset(2)))
}

fn resolve(ws: &TestWorkspace, word: &str) -> Result<CheckpointId, Error> {
    ws.open().resolve(word, &zoned(ws.now()))
}

fn save(ws: &TestWorkspace, number: usize, request: SaveRequest) -> Checkpoint {
    ws.write("a", format!("{number}"));
    ws.save_with(&request).checkpoint
}

#[test]
fn relative_addresses_count_back_from_the_current_checkpoint() {
    let ws = TestWorkspace::new();
    let ids: Vec<CheckpointId> = (0..4).map(|number| save(&ws, number, SaveRequest::default()).id).collect();
    for (word, expected) in [
        ("@", ids[3]),
        ("@~0", ids[3]),
        ("@~", ids[2]),
        ("@~1", ids[2]),
        ("@~3", ids[0]),
        ("latest", ids[3]),
        ("before:@", ids[2]),
        ("before:before:@", ids[1]),
        ("before:@~1", ids[1]),
        ("before:latest", ids[2]),
    ] {
        assert_eq!(resolve(&ws, word).unwrap(), expected, "{word}");
    }
    for word in ["@~4", "@~99999999999999999999", "@x", "", "-x", "step:1", "no-such-name"] {
        assert_eq!(resolve(&ws, word).unwrap_err().code(), ErrorCode::UnknownCheckpoint, "{word:?}");
    }
    let first = format!("before:{}", ids[0]);
    assert!(matches!(resolve(&ws, &first), Err(Error::NoEarlierCheckpoint { .. })));
}

/// A user who reads 10:40 on a clock means that whole minute, not its first millisecond.
#[test]
fn a_clock_time_means_its_whole_minute() {
    let ws = TestWorkspace::new();
    let at = |number: usize, time: &str| {
        ws.write("a", format!("{number}"));
        ws.open().save(&SaveRequest::default(), time.parse::<jiff::Timestamp>().unwrap()).unwrap().checkpoint.id
    };
    let first = at(1, "2026-11-15T08:40:20Z");
    let second = at(2, "2026-11-15T08:40:40.500Z");
    let third = at(3, "2026-11-15T08:41:00Z");
    let fourth = at(4, "2026-11-16T01:00:00Z");
    let now = zoned("2026-11-15T20:00:00Z".parse().unwrap());
    for (word, expected) in [
        ("at:10:40", second),
        ("at:10:40:20", first),
        ("at:10:40:40", second),
        ("at:10:40:40.100", first),
        ("at:10:41", third),
        ("at:2026-11-15", third),
        ("at:2026-11-16", fourth),
        ("at:2026-11-15T10:40", second),
        ("at:2026-11-15T08:40:20Z", first),
    ] {
        assert_eq!(ws.open().resolve(word, &now).unwrap(), expected, "{word}");
    }
    assert!(ws.open().resolve("at:10:39", &now).is_err());
    assert!(ws.open().resolve("at:2026-11-14T23:00", &now).is_err(), "no checkpoint is that old");
}

#[test]
fn a_step_or_name_means_its_newest_checkpoint() {
    let ws = TestWorkspace::new();
    let step = |number| SaveRequest {
        kind: Some(Kind::Step),
        origin: Origin { step: Some(number), ..Origin::default() },
        ..Default::default()
    };
    let named = |name: &str| SaveRequest { name: Some(name.into()), ..Default::default() };
    save(&ws, 0, step(7));
    let newer = save(&ws, 1, step(7));
    save(&ws, 2, named("stable"));
    let stable = save(&ws, 3, named("stable"));
    let hexadecimal = save(&ws, 4, named("deadbeef"));
    save(&ws, 5, SaveRequest::default());
    assert_eq!(resolve(&ws, "step:7").unwrap(), newer.id);
    assert_eq!(resolve(&ws, "stable").unwrap(), stable.id);
    assert_eq!(resolve(&ws, "deadbeef").unwrap(), hexadecimal.id, "a name wins over an id prefix");
    match resolve(&ws, "stabel").unwrap_err() {
        Error::UnknownCheckpoint { nearest, .. } => assert_eq!(nearest.as_deref(), Some("stable")),
        other => panic!("{other}"),
    }
}

#[test]
fn ids_and_unique_id_prefixes_are_resolved() {
    let ws = TestWorkspace::new();
    let ids: Vec<CheckpointId> = (0..40).map(|number| save(&ws, number, SaveRequest::default()).id).collect();
    for id in &ids {
        let text = id.to_string();
        assert_eq!(resolve(&ws, &text).unwrap(), *id);
        for length in [4, 7, 12, 39] {
            let prefix = &text[..length];
            let matching: Vec<_> = ids.iter().filter(|other| other.to_string().starts_with(prefix)).collect();
            match resolve(&ws, prefix) {
                Ok(found) => assert_eq!((found, matching.len()), (*id, 1), "{prefix}"),
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::AmbiguousCheckpoint, "{prefix}");
                    assert!(matching.len() > 1, "{prefix}");
                }
            }
        }
        assert!(resolve(&ws, &text[..3]).is_err(), "three characters are too few");
    }
    assert_eq!(resolve(&ws, &"0".repeat(40)).unwrap_err().code(), ErrorCode::UnknownCheckpoint);
}

#[test]
fn a_time_means_the_newest_checkpoint_up_to_then() {
    let ws = TestWorkspace::new();
    let first = save(&ws, 0, SaveRequest::default());
    let second = save(&ws, 1, SaveRequest::default());
    let workspace = ws.open();
    let later = zoned(second.time + jiff::SignedDuration::from_secs(600));
    let at = |word: &str| workspace.resolve(word, &later);
    assert_eq!(at("ago:10m").unwrap(), second.id, "the checkpoint was taken at exactly that time");
    assert_eq!(at("ago:5m").unwrap(), second.id);
    assert_eq!(at("ago:10m1s").unwrap(), first.id);
    assert!(at("ago:1d").is_err());
    assert_eq!(at(&format!("at:{}", second.time)).unwrap(), second.id);
    assert_eq!(at(&format!("at:{}", first.time)).unwrap(), first.id);
    let local = zoned(second.time).datetime();
    assert_eq!(at(&format!("at:{local}")).unwrap(), second.id);
    assert_eq!(at(&format!("at:{}", local.time())).unwrap(), second.id);
    assert!(at("at:2001-01-01T00:00").is_err());
}

#[test]
fn names_that_could_be_read_as_an_address_or_an_option_are_refused() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    for name in ["", "latest", "@", "@~2", "step:1", "before:x", "ago:5m", "at:12:00", "-f"] {
        let request = SaveRequest { name: Some(name.into()), ..Default::default() };
        let error = ws.open().save(&request, ws.now()).unwrap_err();
        assert!(matches!(error, Error::InvalidName { .. }), "{name:?}: {error}");
    }
    assert!(!ws.stores().exists(), "a refused save creates no store");
}

#[test]
fn no_address_is_valid_before_the_first_save() {
    let ws = TestWorkspace::new();
    for word in ["@", "latest", "x", "before:@", "ago:1s"] {
        assert_eq!(resolve(&ws, word).unwrap_err().code(), ErrorCode::UnknownCheckpoint, "{word}");
    }
}

/// Takes the checkpoint of a prompt.
fn prompt(ws: &TestWorkspace, session: &str, number: u64) -> CheckpointId {
    let origin = Origin { session: Some(session.into()), turn: Some(number), ..Origin::default() };
    let request = SaveRequest { kind: Some(Kind::Turn), allow_empty: true, origin, ..Default::default() };
    ws.save_with(&request).checkpoint.id
}

#[test]
fn a_turn_is_the_prompt_of_that_number_in_the_last_session() {
    let ws = TestWorkspace::new();
    let first = prompt(&ws, "one", 1);
    let second = prompt(&ws, "one", 2);
    let other = prompt(&ws, "two", 1);
    // A session that only began has not worked yet.
    let began = Origin { session: Some("three".into()), ..Origin::default() };
    save(&ws, 0, SaveRequest { kind: Some(Kind::Session), origin: began, ..Default::default() });
    assert_eq!(resolve(&ws, "turn:1").unwrap(), other);
    assert_eq!(resolve(&ws, "before:turn:1").unwrap(), second);
    let in_session = |word: &str, session: &str| ws.open().resolve_in_session(word, Some(session), &zoned(ws.now()));
    assert_eq!(in_session("turn:1", "one").unwrap(), first);
    assert_eq!(in_session("turn:2~1", "one").unwrap(), first);
    for word in ["turn:2", "turn:0", "turn:x", "turn:"] {
        assert_eq!(resolve(&ws, word).unwrap_err().code(), ErrorCode::UnknownCheckpoint, "{word}");
    }
    assert_eq!(in_session("turn:1", "three").unwrap_err().code(), ErrorCode::UnknownCheckpoint);
}

#[test]
fn steps_back_are_counted_from_any_address() {
    let ws = TestWorkspace::new();
    let named = |name: &str| SaveRequest { name: Some(name.into()), ..Default::default() };
    let ids: Vec<CheckpointId> = (0..4).map(|number| save(&ws, number, named(&format!("n{number}"))).id).collect();
    let short = ids[3].short();
    for (word, expected) in [
        (format!("{short}~0"), ids[3]),
        (format!("{short}~"), ids[2]),
        (format!("{}~3", ids[3]), ids[0]),
        ("n2~1".into(), ids[1]),
        ("n3~1~1".into(), ids[1]),
        ("latest~2".into(), ids[1]),
        ("before:n3~1".into(), ids[1]),
    ] {
        assert_eq!(resolve(&ws, &word).unwrap(), expected, "{word}");
    }
    ws.open().delete(&[ids[2]], false, ws.now()).unwrap();
    assert_eq!(resolve(&ws, "n3~1").unwrap(), ids[1], "deleted checkpoints are skipped");
    assert_eq!(resolve(&ws, "n1~2").unwrap_err().code(), ErrorCode::UnknownCheckpoint);
}

#[test]
fn a_range_is_the_line_after_one_checkpoint_up_to_another() {
    let ws = TestWorkspace::new();
    let ids: Vec<CheckpointId> = (0..4).map(|number| save(&ws, number, SaveRequest::default()).id).collect();
    let workspace = ws.open();
    let range = |word: &str| workspace.resolve_range(word, None, &zoned(ws.now()));
    let listed = |word: &str| {
        let filter = ListFilter { range: range(word).unwrap(), ..ListFilter::default() };
        workspace.list(&filter).map(|found| found.iter().map(|checkpoint| checkpoint.id).collect::<Vec<_>>())
    };
    assert_eq!(range("@~3..@").unwrap(), Some(Range { from: ids[0], to: ids[3] }));
    assert_eq!(listed("@~3..@~1").unwrap(), [ids[2], ids[1]]);
    assert_eq!(listed("@..@").unwrap(), []);
    assert_eq!(range("@").unwrap(), None);
    assert_eq!(range("nothing..@").unwrap_err().code(), ErrorCode::UnknownCheckpoint);
    let backwards = range("@..@~2").unwrap().unwrap();
    assert_eq!(listed("@..@~2").unwrap_err().code(), ErrorCode::Usage);
    assert_eq!(workspace.refuse_backwards(&backwards).unwrap_err().code(), ErrorCode::Usage);
    workspace.refuse_backwards(&range("@~2..@").unwrap().unwrap()).unwrap();
    workspace.refuse_backwards(&range("@..@").unwrap().unwrap()).unwrap();
    assert_eq!(resolve(&ws, "@~1..@").unwrap_err().code(), ErrorCode::UnknownCheckpoint, "not one checkpoint");

    workspace.restore(&RestoreRequest::whole(ids[1]), ws.now()).unwrap();
    let fork = save(&ws, 9, SaveRequest::default()).id;
    assert_eq!(listed(&format!("{}..@", ids[0])).unwrap(), [fork, ids[1]]);
    let beside = format!("{}..{fork}", ids[3]);
    assert_eq!(listed(&beside).unwrap_err().code(), ErrorCode::Usage, "not on one line");
    workspace.refuse_backwards(&range(&beside).unwrap().unwrap()).unwrap();
}

/// Names that earlier versions accepted may look like `turn:3`, `v~1` or `v1..v2` now.
#[test]
fn a_name_of_an_earlier_version_still_wins() {
    let ws = TestWorkspace::new();
    save(&ws, 0, SaveRequest::default());
    let known = prompt(&ws, "s", 3);
    for (number, name) in ["turn:3", "turn:x", "v~1", "v1..v2"].into_iter().enumerate() {
        let refused = SaveRequest { name: Some(name.into()), ..Default::default() };
        assert!(matches!(ws.open().save(&refused, ws.now()), Err(Error::InvalidName { .. })), "{name}");
        let stand_in = "x".repeat(name.len());
        let named = SaveRequest { name: Some(stand_in.clone()), ..Default::default() };
        let id = save(&ws, number + 1, named).id;
        let old = renamed(&ws, &id, &stand_in, name);
        assert_eq!(resolve(&ws, name).unwrap().to_string(), old, "{name}");
        assert_eq!(ws.open().resolve_range(name, None, &zoned(ws.now())).unwrap(), None, "{name}");
        if matches!(name, "turn:3" | "v~1") {
            assert_eq!(resolve(&ws, &format!("{name}~1")).unwrap(), ws.open().get(&id).unwrap().parent.unwrap());
        }
    }
    assert_ne!(resolve(&ws, "turn:3").unwrap(), known);
}

/// Adds a copy of a checkpoint to the store, with another name of the same length in its record. Returns its id.
fn renamed(ws: &TestWorkspace, id: &CheckpointId, name: &str, wanted: &str) -> String {
    let commit = ws.store_git(&["cat-file", "commit", &id.to_string()]);
    let text = String::from_utf8(commit).unwrap().replace(&format!("\"{name}\""), &format!("\"{wanted}\""));
    let written = git_output_with(&ws.store(), &["hash-object", "-t", "commit", "-w", "--stdin"], text.into_bytes());
    let copy = String::from_utf8(written.stdout).unwrap().trim().to_owned();
    std::fs::write(ws.store().join("refs/checkpoints").join(&copy), format!("{copy}\n")).unwrap();
    copy
}
