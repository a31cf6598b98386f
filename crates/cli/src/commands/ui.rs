//! `ui`: serves the timeline as a page, and opens it in the browser.

use std::{
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use backtrail::Error;
use backtrail_server::{AllWorkspaces, End, PageTokens, ShownWorkspaces, Token, serve_page};
use clap::Args;

use crate::{failure::Failure, invocation::Invocation, output::UiJson};

/// The exit status that a shell shows for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// The programs that open an address in the user's browser.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// Show the timeline in the browser
///
/// Prints the address of a page, opens it, and serves it until Ctrl-C. The page shows what each prompt and each step
/// changed while agents work, and restores or takes back any of it. Only this machine can reach it, and only with the
/// token in the address. The page needs nothing from the network.
#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Serve on this port; 0 chooses a free port
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Show every workspace that has a store
    #[arg(long)]
    all_workspaces: bool,
}

pub(crate) fn run(args: &UiArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspaces =
        ShownWorkspaces { own: invocation.served()?, all: args.all_workspaces.then(|| all(invocation)).transpose()? };
    let tokens = PageTokens { lasting: token()?, once: token()? };
    let [lasting, once] = [&tokens.lasting, &tokens.once].map(|token| token.reveal().to_owned());
    let mut printed = Ok(());
    let end = serve_page(workspaces, args.port, tokens, |address| {
        let url = |token: &str| format!("http://{address}/?token={token}");
        printed = tell(&url(&lasting), address.port(), invocation);
        if printed.is_ok() && !args.no_open {
            // Other users can see the arguments of a program, so this token can be used only once.
            open(&url(&once), invocation);
        }
    })?;
    printed?;
    Ok(match end {
        End::Done => ExitCode::SUCCESS,
        End::Interrupted => ExitCode::from(INTERRUPTED),
    })
}

fn token() -> Result<Token, Failure> {
    Token::random().map_err(|error| Error::Internal(error.to_string()).into())
}

fn tell(url: &str, port: u16, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&UiJson::new(url, port))?;
    } else {
        output.text(&format!("{url}\n"))?;
        output.note("serving the timeline until Ctrl-C; the address contains a secret, so do not share it");
    }
    Ok(())
}

fn all(invocation: &Invocation) -> Result<AllWorkspaces, Failure> {
    Ok(AllWorkspaces { stores: invocation.stores()?, open: Box::new(invocation.opener_of_any()?) })
}

/// Opens an address in the user's browser, if there is one. The address is printed in any case.
fn open(url: &str, invocation: &Invocation) {
    let Ok(here) = invocation.file(Path::new("")) else { return };
    let Some(program) = OPENERS.iter().find(|program| invocation.has_program(program, &here)) else { return };
    let quiet = Stdio::null;
    let started = Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if let Ok(mut child) = started {
        // Waited for, so that no ended process remains while the server runs.
        std::thread::spawn(move || child.wait());
    }
}
