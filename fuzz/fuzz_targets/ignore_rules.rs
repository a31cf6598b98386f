#![no_main]

use std::cell::RefCell;

use backtrail::fuzzing::IgnoreQuestion;
use backtrail_testkit::CheckIgnore;

thread_local! {
    static GIT: RefCell<CheckIgnore> = RefCell::new(CheckIgnore::new());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(question) = IgnoreQuestion::parse(bytes) else { return };
    let by_git = GIT.with_borrow_mut(|git| git.is_ignored(&question));
    assert_eq!(question.is_ignored(), by_git, "is it ignored? here and in git: {question:?}");
});
