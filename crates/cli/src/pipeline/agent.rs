//! The command that receives a prompt.

use std::process::Command;

const PROMPT: &str = "{prompt}";
const MODEL: &str = "{model}";

/// A command template such as `claude -p {prompt}`. It is split into words like a shell command, but no shell runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentCommand {
    words: Vec<String>,
}

impl AgentCommand {
    /// Parses a template. The error describes the problem.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let words = shlex::split(template).ok_or_else(|| format!("the agent command `{template}` has open quotes"))?;
        if words.is_empty() {
            return Err("the agent command is empty".into());
        }
        if !words.iter().any(|word| word.contains(PROMPT)) {
            return Err(format!("the agent command `{template}` has no {PROMPT}"));
        }
        Ok(Self { words })
    }

    /// Returns the program's name or path.
    pub(super) fn program(&self) -> &str {
        &self.words[0]
    }

    /// Returns whether the template contains `{model}`.
    pub(super) fn takes_model(&self) -> bool {
        self.words.iter().any(|word| word.contains(MODEL))
    }

    /// Returns the words with prompt and model filled in. Each stays one word.
    pub(crate) fn words(&self, prompt: &str, model: Option<&str>) -> Vec<String> {
        self.words.iter().map(|word| fill(word, prompt, model.unwrap_or_default())).collect()
    }

    pub(super) fn command(&self, prompt: &str, model: Option<&str>) -> Command {
        let words = self.words(prompt, model);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Fills in both placeholders in one pass, so that placeholders in the prompt stay plain text.
fn fill(word: &str, prompt: &str, model: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let (place, value) = match rest {
            _ if rest.starts_with(PROMPT) => (PROMPT, prompt),
            _ if rest.starts_with(MODEL) => (MODEL, model),
            _ => ("{", "{"),
        };
        out.push_str(value);
        rest = &rest[place.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_one_word_whatever_it_contains() {
        let agent = AgentCommand::parse("claude -p {prompt} --model '{model}' --note=\"a b\"").unwrap();
        let prompt = "say 'hi'; rm -rf \"$HOME\"\n{model} {prompt}";
        assert_eq!(agent.words(prompt, Some("m")), ["claude", "-p", prompt, "--model", "m", "--note=a b"]);
        let joined = AgentCommand::parse("x --prompt={prompt}").unwrap();
        assert_eq!(joined.words("a b", None), ["x", "--prompt=a b"]);
        assert!(!joined.takes_model() && agent.takes_model());
    }

    #[test]
    fn invalid_templates_are_refused() {
        for (template, word) in [("build", "{prompt}"), ("", "empty"), ("claude -p '{prompt}", "open quotes")] {
            let problem = AgentCommand::parse(template).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
