use bstr::ByteSlice;
use gix_glob::wildmatch;
use proptest::prelude::*;

use super::*;

fn is_match(pattern: &str, path: &str) -> bool {
    matches(pattern.as_bytes(), path.as_bytes(), Case::Sensitive)
}

#[test]
fn stars_match_within_one_name() {
    for (pattern, path) in
        [("*", ""), ("*.rs", "a.rs"), ("a*b*c", "aXbYbc"), ("*/b", "a/b"), ("a*", "a"), ("a**b", "axb")]
    {
        assert!(is_match(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [("*", "a/b"), ("a*c", "a/c"), ("*/b", "a/x/b"), ("a**b", "a/b"), ("?", "/"), ("a?b", "a/b")]
    {
        assert!(!is_match(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn two_stars_between_slashes_match_directories() {
    for (pattern, path) in [
        ("**", "a/b/c"),
        ("**/c", "c"),
        ("**/c", "a/b/c"),
        ("a/**", "a/b/c"),
        ("a/**/c", "a/c"),
        ("a/**/c", "a/b/b/c"),
        ("**/b*/**/d", "a/bx/c/d"),
        ("***/c", "a/b/c"),
        ("**\\/c", "a/b/c"),
        ("a/**/*b", "a/x/y/zb"),
    ] {
        assert!(is_match(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in
        [("**/c", "a/bc"), ("a/**", "a"), ("a/**/c", "a/bc"), ("**\\/c", "c"), ("**/b/d", "b/c/d"), ("**x/c", "a/bx/c")]
    {
        assert!(!is_match(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn brackets_are_read_as_git_reads_them() {
    for (pattern, path) in [
        ("[[:]", "["),
        ("[[:]]", "[]"),
        ("[a-]", "-"),
        ("[]-a]", "^"),
        ("[\\]]", "]"),
        ("[--0]", "."),
        ("[[:alpha:]-z]", "-"),
        ("[a\\-z]", "-"),
        ("[^^]", "!"),
        ("[a-\\z]", "b"),
        ("[!a]", "b"),
        ("[\\x80-\\xff]", "x"),
    ] {
        assert!(is_match(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [
        ("a[", "a["),
        ("[[::]]", ":"),
        ("[a-", "a"),
        ("[!]", "a"),
        ("[[:digit:]", "1"),
        ("[[:nothing:]]", "a"),
        ("[--0]", "/"),
        ("[!a]", "/"),
        ("[a\\-z]", "b"),
        ("a\\", "a"),
        ("a\\", "a\\"),
    ] {
        assert!(!is_match(pattern, path), "{pattern} {path}");
    }
    assert!(matches(b"[\x80-\xff]?\xc3", b"\xe9\xfe\xc3", Case::Sensitive));
    assert!(!matches(b"[\x80-\xff]", b"x", Case::Sensitive));
}

#[test]
fn case_is_folded_everywhere_when_asked_to() {
    for pattern in ["*.PEM", "x.\\P*m", "?.[p]em", "X.[O-Q]eM", "X.[[:upper:]]Em", "**/X.pem"] {
        assert!(matches(pattern.as_bytes(), b"x.pEM", Case::Fold), "{pattern}");
    }
    assert!(!matches(b"[!P]", b"p", Case::Fold));
    assert!(!matches(b"*.PEM", b"x.pEM", Case::Sensitive));
}

/// With thirty `**/` in one line of a `.gitignore`, matching did not finish in any reasonable time.
#[test]
fn a_pattern_with_many_stars_is_matched_at_once() {
    let path = "a/".repeat(20_000) + "x";
    let name = "a".repeat(20_000);
    assert!(!is_match(&("**/".repeat(3_000) + "b"), &path));
    assert!(!is_match(&"**/a*a/".repeat(500), &path));
    assert!(!is_match(&("*a".repeat(3_000) + "b"), &name));
    assert!(!is_match(&("**/".repeat(300) + &"*a".repeat(300) + "b"), &path));
    assert!(is_match(&("**/".repeat(3_000) + "x"), &path));
    assert!(is_match(&("*a".repeat(3_000) + "*"), &name));
}

/// Building blocks for random patterns, including unusual ones.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"A",
        b"/",
        b"/",
        b"*",
        b"*",
        b"**",
        b"**/",
        b"/**/",
        b"?",
        b"[ab]",
        b"[!a]",
        b"[a-c]",
        b"[]a]",
        b"[",
        b"]",
        b"\\",
        b"\\*",
        b"-",
        b"[[:alpha:]]",
        b"[[:digit:]-]",
        b"\xff",
        b"[\x80-\xff]",
        b"[^/]",
        b"\\a",
    ]);
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"aaabbAc//-]\\*1\xff\xc3".to_vec());
    prop::collection::vec(byte, 0..12)
}

/// Returns `true` for patterns that gitoxide interprets differently from git.
fn is_read_otherwise(pattern: &[u8]) -> bool {
    // Git requires the slash of `**\/`. In a class, gitoxide drops an escaped byte that could begin a range.
    pattern.contains_str("**\\") || (pattern.contains(&b'[') && pattern.contains(&b'\\'))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn short_patterns_match_as_in_gitoxide(pattern in pattern(), path in path()) {
        prop_assume!(!is_read_otherwise(&pattern));
        let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
        let expected = gix_glob::wildmatch(pattern.as_bstr(), path.as_bstr(), mode);
        prop_assert_eq!(matches(&pattern, &path, Case::Sensitive), expected, "{} {}", pattern.as_bstr(), path.as_bstr());
    }
}
