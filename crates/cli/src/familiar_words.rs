//! Commands and options of other tools, with what to write instead.
//!
//! People type what they know from git, jj or a backup program. The nearest spelling would send them to a command that
//! does something else.

/// Commands of other tools. The first word that fits counts.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["stash"],
        "to keep unsaved work and take it out of the files: backtrail save, then backtrail restore @~1; to get it \
         back: backtrail undo",
    ),
    (&["reflog"], "every checkpoint, those of restores included: backtrail list --all"),
    (
        &["checkout", "switch", "co"],
        "to bring back a checkpoint: backtrail restore ID; only a file: backtrail restore ID PATH",
    ),
    (
        &["reset", "clean"],
        "to set all files back to a checkpoint: backtrail restore ID; to the last one: backtrail restore @",
    ),
    (
        &["commit", "ci", "add", "snapshot", "create", "backup", "record"],
        "to take a checkpoint of all files: backtrail save MESSAGE",
    ),
    (&["branch"], "to work on a copy of the files: backtrail fork DIR; the timeline forks by itself after a restore"),
    (&["worktree", "clone"], "to work on a copy of the files: backtrail fork DIR"),
    (
        &["merge", "cherry-pick", "rebase"],
        "to bring in the work of a fork: backtrail adopt DIR; to take back a change: backtrail revert ID",
    ),
    (&["tag"], "to give a checkpoint a name: backtrail save --name NAME"),
    (&["gc", "repack", "optimize", "compact"], "to free space: backtrail prune"),
    (&["fsck", "check"], "to check the store: backtrail verify"),
    (&["config", "settings"], "settings are in backtrail.toml; see those in effect with: backtrail doctor"),
    (&["rev-parse", "rev-list", "ls-tree", "cat-file", "shortlog"], "to run git on the store: backtrail git COMMAND"),
    (
        &["grep", "find", "search"],
        "to search messages and prompts: backtrail list --grep TEXT; contents: backtrail list --contents TEXT",
    ),
    (
        &["push", "pull", "fetch", "remote"],
        "checkpoints stay on this machine; to copy one elsewhere: backtrail export ID DIR",
    ),
    (&["snapshots", "checkpoints", "timeline", "versions"], "to list the checkpoints: backtrail list"),
    (&["forget", "abandon", "drop", "remove"], "to delete a checkpoint: backtrail delete ID"),
    (&["dump", "get", "print"], "to print a file of a checkpoint: backtrail cat ID PATH"),
    (&["goto", "back", "jump", "apply", "recover-file"], "to bring back a checkpoint: backtrail restore ID"),
    (&["compare", "changes"], "to see what changed: backtrail diff"),
    (&["ignore"], "to leave files out of checkpoints: backtrail exclude PATTERN"),
    (&["serve", "server"], "to start the MCP server: backtrail mcp"),
    (&["setup", "enable"], "to install the hooks of an agent: backtrail install AGENT"),
];

/// Options of other tools: the commands to which they are given, the options, and what to write instead.
const OPTIONS: &[(&[&str], &[&str], &str)] = &[
    (&["diff"], &["-p", "--patch", "-u"], "diff shows the patch by itself: backtrail diff"),
    (
        &["diff"],
        &["--cached", "--staged"],
        "checkpoints have no staging area: backtrail diff compares with the files on disk",
    ),
    (&["diff"], &["--name-only"], "to see the paths and how they changed: backtrail diff --name-status"),
    (&["list"], &["-p", "--patch", "-u"], "to see the changes of a checkpoint: backtrail show ID --patch"),
    (&["list"], &["--stat", "--name-only", "--name-status"], "to see the changes of a checkpoint: backtrail show ID"),
    (&["list"], &["--oneline", "--graph", "--decorate"], "list shows one line and the graph by itself: backtrail list"),
    (&["list"], &["-S", "-G"], "to search contents: backtrail list --contents TEXT"),
    (&["list"], &["--author"], "to list the checkpoints of a session: backtrail list --session ID"),
    (&["list"], &["--after"], "to list the checkpoints since a time: backtrail list --since TIME"),
    (&["list"], &["--before"], "to list the checkpoints up to a time: backtrail list --until TIME"),
    (
        &["list"],
        &["-r", "--reverse"],
        "the newest checkpoint comes first; the oldest are at the end of: backtrail list",
    ),
    (
        &["show"],
        &["--stat", "--name-only", "--name-status"],
        "show lists the changed files by itself: backtrail show ID",
    ),
    (
        &["status"],
        &["-s", "--short", "--porcelain"],
        "for programs: backtrail status --json; for the paths alone: backtrail diff --name-status",
    ),
    (&["save"], &["-a", "--all", "-A"], "save takes all files by itself: backtrail save MESSAGE"),
    (&["save"], &["--amend"], "a checkpoint is never changed; take another one with: backtrail save MESSAGE"),
    (&["save"], &["-p", "--patch"], "save takes all files; to restore only some changes: backtrail restore -p"),
    (
        &["restore", "rewind"],
        &["--hard", "--soft", "--mixed", "--keep"],
        "restore always sets the files back, and keeps unsaved work: backtrail restore ID",
    ),
    (
        &["restore"],
        &["-f", "--force"],
        "restore needs no force: unsaved work is kept, and backtrail undo takes the restore back",
    ),
    (
        &["restore"],
        &["--staged", "--worktree", "-S", "-W"],
        "restore changes the files alone: backtrail restore ID PATH",
    ),
    (&["restore"], &["-s", "--source"], "write the checkpoint first: backtrail restore ID PATH"),
    (
        &["undo", "redo", "rewind"],
        &["-n", "--steps"],
        "to see what would happen: --dry-run; to go back several checkpoints: backtrail rewind N",
    ),
    (
        &["revert"],
        &["--no-edit", "--no-commit", "-n", "-m"],
        "revert changes the files alone and asks for no message: backtrail revert ID",
    ),
    (&["delete", "prune"], &["-n"], "to see what would be removed: --dry-run"),
];

/// Returns what to write instead of a command of another tool. Returns `None` if it is not known.
pub(crate) fn instead_of_command(word: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// Returns what to write instead of an option that a command of another tool has. Returns `None` if it is not known.
pub(crate) fn instead_of_option(command: &str, option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    let fits =
        |(commands, options, _): &&(&[&str], &[&str], &str)| commands.contains(&command) && options.contains(&name);
    OPTIONS.iter().find(fits).map(|(_, _, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn no_word_is_a_command_or_an_option_of_this_program() {
        let mut program = Cli::command();
        program.build();
        for word in COMMANDS.iter().flat_map(|(words, _)| *words) {
            assert!(program.find_subcommand(word).is_none(), "{word} is a command now");
        }
        for (commands, options, _) in OPTIONS {
            for command in commands.iter() {
                let command = program.find_subcommand(command).unwrap();
                let own = |option: &str| {
                    command.get_arguments().any(|arg| {
                        let long = arg.get_long().map(|long| format!("--{long}"));
                        let short = arg.get_short().map(|short| format!("-{short}"));
                        [long, short].iter().flatten().any(|name| name == option)
                    })
                };
                for option in options.iter() {
                    assert!(!own(option), "{} has {option} now", command.get_name());
                }
            }
        }
    }

    #[test]
    fn the_commands_in_hints_exist() {
        let program = Cli::command();
        let hints = COMMANDS.iter().map(|(_, hint)| hint).chain(OPTIONS.iter().map(|(_, _, hint)| hint));
        for hint in hints {
            for named in hint.split("backtrail ").skip(1) {
                let word = named.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                assert!(program.find_subcommand(word).is_some(), "{hint}");
            }
        }
    }
}
