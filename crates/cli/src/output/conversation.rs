//! Output about a conversation that is brought back, for users and programs.

use serde::Serialize;

use super::visible::{first_line, visible_path};
use crate::hooks::conversation::{Continuation, Fork};

/// An answer, with the conversation if the user asked for it.
#[derive(Serialize)]
pub(crate) struct WithConversation<'a, A> {
    #[serde(flatten)]
    answer: A,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationJson<'a>>,
}

#[derive(Serialize)]
struct ConversationJson<'a> {
    agent: &'static str,
    session: Option<&'a str>,
    file: Option<String>,
    command: &'a str,
    is_live: bool,
    is_supported: bool,
}

impl<'a, A> WithConversation<'a, A> {
    pub(crate) fn new(answer: A, fork: Option<&'a Fork>) -> Self {
        let conversation = fork.map(|fork| ConversationJson {
            agent: fork.agent.name(),
            session: fork.copy().map(|copy| copy.session.as_str()),
            file: fork.copy().map(|copy| copy.path.to_string_lossy().into_owned()),
            command: &fork.command,
            is_live: fork.is_live,
            is_supported: fork.continuation != Continuation::Unsupported,
        });
        Self { answer, conversation }
    }
}

/// Returns how to continue the conversation.
pub(crate) fn conversation_text(fork: &Fork) -> String {
    let title = fork.agent.title();
    let prompt = first_line(&fork.before);
    let exit = if fork.is_live {
        format!("exit {title}, which is still running, then run")
    } else {
        "continue with".to_owned()
    };
    match &fork.continuation {
        Continuation::Copy(copy) => format!(
            "the conversation up to \"{prompt}\" is now a new session, in {}\n{exit}: {}\n",
            visible_path(&copy.path),
            fork.command
        ),
        Continuation::ReadOnly => {
            format!("{title} can't continue from a file; read the conversation with: {}\n", fork.command)
        }
        Continuation::Unsupported => {
            format!("the conversation is not restored: this is not supported for {title}\n")
        }
        Continuation::New => {
            format!("the conversation was empty before \"{prompt}\"; start a new one with: {}\n", fork.command)
        }
    }
}
