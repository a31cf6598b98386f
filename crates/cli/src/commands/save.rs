//! `save`: takes a checkpoint.

use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::{Author, Checkpoint, Context, Error, Kind, Origin, SaveRequest, Saved, Workspace, json::SavedJson};
use clap::Args;

use crate::{
    cli::{Assignment, assignment, author, kind_to_save, text},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{capture_larger, exclude_commands, first_line, saved_sentence, saved_warnings, shell_words},
};

/// Take a checkpoint of the workspace
///
/// The checkpoint survives a power cut once this command has ended. No new checkpoint is taken if nothing changed since
/// the one that the workspace stands on, and only a message, --agent, --session, --session-number or --tokens is given.
#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The message of the checkpoint; without one, it names the changed paths
    #[arg(value_parser = text())]
    message: Option<String>,
    /// The message, as an option
    #[arg(short, long = "message", value_name = "MESSAGE", conflicts_with = "message", value_parser = text())]
    #[arg(id = "message_option", allow_hyphen_values = true)]
    message_option: Option<String>,
    /// A name for the checkpoint
    #[arg(long, value_parser = text())]
    name: Option<String>,
    /// A longer description
    #[arg(long, value_name = "TEXT", value_parser = text(), allow_hyphen_values = true)]
    description: Option<String>,
    /// The kind of the checkpoint, which decides how long it is kept
    #[arg(long, value_parser = kind_to_save(), default_value = "manual")]
    kind: Kind,
    /// The number of the agent's step
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    step: Option<u64>,
    /// The id of the agent's session
    #[arg(long, value_name = "ID", value_parser = text())]
    session: Option<String>,
    /// The number of the agent's session
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    session_number: Option<u64>,
    /// The number of tokens that the agent has used
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tokens: Option<u64>,
    /// The name of the agent
    #[arg(long, value_name = "NAME", value_parser = text())]
    agent: Option<String>,
    /// The author of the changes since the previous checkpoint
    #[arg(long, value_name = "WHO", value_parser = author())]
    author: Option<Author>,
    /// A value to store with the checkpoint; can be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment::<std::ffi::OsString>())]
    meta: Vec<Assignment<std::ffi::OsString>>,
    /// A file to store with the checkpoint, under a name; can be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = assignment::<PathBuf>())]
    attach: Vec<Assignment<PathBuf>>,
    /// A path to capture although it is ignored, now and in later checkpoints; can be given several times
    #[arg(long, value_name = "PATH")]
    include: Vec<PathBuf>,
    /// Take a checkpoint even if nothing changed
    #[arg(long)]
    allow_empty: bool,
    /// Look at every file, even if a watcher knows what changed
    #[arg(long)]
    full_scan: bool,
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: SaveArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    refuse_doubles(&args.attach)?;
    let mut workspace = invocation.workspace_to_write(Protection::unless(args.force))?;
    if args.full_scan {
        workspace.scan_fully();
    }
    let gave_message = args.message.is_some() || args.message_option.is_some();
    let request = request(args, &workspace, invocation)?;
    let named = request.name.as_ref().and_then(|name| named_before(name, &workspace, invocation));
    let progress = invocation.output.progress(&workspace, "saving");
    let saved = workspace.save(&request, invocation.now.timestamp());
    drop(progress);
    report(&saved?, gave_message, &workspace, invocation)?;
    if let (Some(before), Some(name)) = (named, &request.name) {
        let what = first_line(&before.message);
        invocation.output.note(&format!(
            "the name {name:?} belongs to this checkpoint now, and no longer to {} {what:?}",
            before.id.short()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the checkpoint that has had this name until now. Returns `None` if there is none.
fn named_before(name: &str, workspace: &Workspace, invocation: &Invocation) -> Option<Checkpoint> {
    // Only a note depends on this: errors are ignored.
    let id = workspace.resolve(name, &invocation.now.for_address(name)).ok()?;
    workspace.get(&id).ok().filter(|checkpoint| checkpoint.name.as_deref() == Some(name))
}

fn request(args: SaveArgs, workspace: &Workspace, invocation: &Invocation) -> Result<SaveRequest, Failure> {
    let has_context = args.session_number.is_some() || args.tokens.is_some();
    let context = Context { session_number: args.session_number, token_usage: args.tokens };
    let metadata = args.meta.into_iter().map(|meta| (meta.key, meta.value.to_string_lossy().into())).collect();
    let attachments = args.attach.iter().map(|attachment| read_attachment(attachment, invocation));
    let include = args.include.iter().map(|path| invocation.path(workspace, path));
    Ok(SaveRequest {
        message: args.message.or(args.message_option),
        name: args.name,
        description: args.description,
        kind: Some(args.kind),
        context: has_context.then_some(context),
        metadata,
        attachments: attachments.collect::<Result<_, _>>()?,
        include: include.collect::<Result<_, _>>()?,
        allow_empty: args.allow_empty,
        origin: Origin {
            step: args.step,
            session: args.session,
            agent: args.agent,
            author: args.author,
            ..Origin::default()
        },
        ..SaveRequest::default()
    })
}

/// Refuses two attachments of the same name, because only one of them would be kept.
fn refuse_doubles(attachments: &[Assignment<PathBuf>]) -> Result<(), Failure> {
    let is_double = |(index, one): (usize, &Assignment<PathBuf>)| {
        attachments[..index].iter().any(|other| other.key == one.key).then(|| one.key.clone())
    };
    match attachments.iter().enumerate().find_map(is_double) {
        Some(name) => {
            let hint = "give each attachment a different name";
            Err(Failure::usage(format!("the attachment {name:?} is given twice"), Some(hint)))
        }
        None => Ok(()),
    }
}

fn read_attachment(attachment: &Assignment<PathBuf>, invocation: &Invocation) -> Result<(String, Vec<u8>), Failure> {
    if attachment.value.as_os_str().is_empty() {
        let hint = format!("name the file: --attach {}=FILE", shell_words([&attachment.key]));
        return Err(Failure::usage(format!("the attachment {:?} has no file", attachment.key), Some(&hint)));
    }
    let path = invocation.file(&attachment.value)?;
    match read_at_once(&path) {
        Ok(Some(bytes)) => Ok((attachment.key.clone(), bytes)),
        Ok(None) => {
            let hint = "write the content to a regular file, and attach that";
            Err(Failure::usage(format!("the attachment {} is not a regular file", path.display()), Some(hint)))
        }
        Err(source) => Err(Error::Io { action: "read the attachment", path, source }.into()),
    }
}

/// Reads a file. Returns `None` for a pipe or a device, because reading it may block forever.
fn read_at_once(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() && !found.is_dir() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn report(saved: &Saved, gave_message: bool, workspace: &Workspace, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&SavedJson::from(saved))?;
    } else {
        output.done(&saved_sentence(saved, output.paint))?;
        if gave_message && !saved.created {
            output.note("the message was not recorded; record it anyway with: backtrail save --allow-empty");
        }
    }
    saved_warnings(saved).iter().for_each(|warning| output.warn(warning));
    capture_larger(saved, workspace.settings().scan.max_file_bytes).iter().for_each(|hint| output.note(hint));
    exclude_commands(saved).iter().for_each(|command| output.note(command));
    Ok(())
}
