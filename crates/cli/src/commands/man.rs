//! `man`: prints the manual page, generated from the definitions of the command line.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::Error;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::{
    cli::{Cli, text},
    failure::Failure,
    invocation::Invocation,
    output::{OutputError, plural, visible_path},
};

/// Print the manual page
///
/// To read it: backtrail man | man -l -
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Only the page of this command
    #[arg(value_parser = text(), conflicts_with = "dir")]
    command: Option<String>,
    /// Write a page for the program and one for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let mut program = Cli::command();
    if let Some(directory) = &args.dir {
        return write_pages(program, directory, invocation);
    }
    program.build();
    let page = match &args.command {
        None => whole_page(&program),
        Some(word) => {
            let command = program.find_subcommand(word).ok_or_else(|| {
                Failure::usage(
                    format!("there is no command {word:?}"),
                    Some("list the commands with: backtrail --help"),
                )
            })?;
            let mut page = Vec::new();
            Man::new(command.clone()).render(&mut page).map(|()| page)
        }
    };
    invocation.output.bytes(&page.map_err(OutputError::from)?)?;
    Ok(ExitCode::SUCCESS)
}

fn write_pages(program: Command, directory: &Path, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let directory = invocation.file(directory)?;
    let count = 1 + program.get_subcommands().filter(is_shown).count();
    let written = std::fs::create_dir_all(&directory).and_then(|()| clap_mangen::generate_to(program, &directory));
    written.map_err(|source| Error::Io { action: "write the pages into", path: directory.clone(), source })?;
    invocation.output.done(&format!("wrote {} into {}", plural(count, "page"), visible_path(&directory)))?;
    Ok(ExitCode::SUCCESS)
}

fn is_shown(command: &&Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

/// Returns the page of the program, with a section for each command.
fn whole_page(program: &Command) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    Man::new(program.clone()).render(&mut first)?;
    let mut page = String::from_utf8_lossy(&first).into_owned();
    for command in program.get_subcommands() {
        // The list of commands refers to a separate page for each command. Here each command is a section.
        let name = command.get_name();
        page = page.replace(&format!("backtrail\\-{name}(1)"), &format!("backtrail {name}"));
    }
    for command in program.get_subcommands().filter(is_shown) {
        page.push_str(&section(command)?);
    }
    Ok(page.into_bytes())
}

fn section(command: &Command) -> io::Result<String> {
    let man = Man::new(without_global_options(command));
    let mut body = Vec::new();
    man.render_synopsis_section(&mut body)?;
    man.render_description_section(&mut body)?;
    man.render_options_section(&mut body)?;
    let body = String::from_utf8_lossy(&body).replace("\n.SH ", "\n.SS ");
    let body = body.strip_prefix(".SH ").map_or_else(|| body.clone(), |rest| format!(".SS {rest}"));
    Ok(format!(".SH \"BACKTRAIL {}\"\n{body}", command.get_name().to_uppercase()))
}

/// Hides the global options of a command, because the program's own part of the page describes them.
fn without_global_options(command: &Command) -> Command {
    let global: Vec<_> =
        command.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().clone()).collect();
    global.into_iter().fold(command.clone(), |command, id| command.mut_arg(id, |arg| arg.hide(true)))
}
