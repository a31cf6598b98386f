//! Checks for the fuzzer: events are bounded, and their paths are absolute.

use std::path::Path;

use super::{
    Agent, Sessions,
    event::{self, HookEvent, Moment},
    tools,
};

pub(crate) fn payload(bytes: &[u8]) {
    for agent in Agent::ALL {
        let read = event::read(agent, bytes);
        match &read {
            Ok(Some(event)) => check(event),
            Ok(None) => {}
            Err(problem) => assert!(!problem.0.is_empty() && !problem.0.contains('\n'), "{problem:?}"),
        }
        // The front and the worker both parse the payload, and must agree.
        let text = serde_json::from_slice::<serde_json::Value>(bytes).map(|value| value.to_string());
        if let Ok(text) = text {
            assert_eq!(event::read(agent, text.as_bytes()), read, "the same, however it is spaced");
        }
    }
}

fn check(event: &HookEvent) {
    assert!((1..=512).contains(&event.session.len()), "a session of {} bytes", event.session.len());
    for path in event.directory.iter().chain(&event.transcript) {
        assert!(path.is_absolute(), "{} depends on where the hook is started", path.display());
    }
    let directory = Path::new("/sessions");
    let file = Sessions::in_directory(directory.to_owned()).file(&event.session);
    assert_eq!(file.parent(), Some(directory), "a session's word is no name of a file");
    if let Moment::BeforeTool(call) | Moment::AfterTool(call) = &event.moment {
        assert!(!call.name.is_empty());
        let named = tools::named_files(call);
        assert!(named.is_sorted() && named.len() <= tools::MAX_PATHS);
        assert!(named.iter().all(|path| !path.as_os_str().is_empty()));
        assert!(named.windows(2).all(|pair| pair[0] != pair[1]), "each once");
        tools::may_change_files(call);
    }
}
