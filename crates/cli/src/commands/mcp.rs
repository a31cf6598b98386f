//! `mcp`: serves the workspace to agents.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use backtrail::Error;
use backtrail_server::{End, Token, parse_address, serve_http, serve_stdio};
use clap::Args;

use crate::{failure::Failure, invocation::Invocation};

/// The exit status that a shell shows for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Serve the workspace to an agent over MCP
///
/// Speaks the Model Context Protocol on stdin and stdout until stdin ends. An agent that is set up for it starts it by
/// itself. The agent can take, list, show and compare checkpoints, and restore files. It can't delete a checkpoint,
/// access files outside the workspace, or see the contents of precious files such as .env.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve over HTTP at this local address, such as 127.0.0.1:7420, or at a port; 0 chooses a free port
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// Read the token that clients must send from this file [default: BACKTRAIL_MCP_TOKEN, else a new token, which is
    /// printed on stderr]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
}

pub(crate) fn run(args: &McpArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let served = invocation.served()?;
    let end = match args.http {
        None => serve_stdio(served)?,
        Some(address) => {
            let (token, is_new) = token(args, invocation)?;
            let secret = is_new.then(|| token.reveal().to_owned());
            serve_http(served, address, token, |address| tell_ready(address, secret.as_deref(), invocation))?
        }
    };
    Ok(match end {
        End::Done => ExitCode::SUCCESS,
        End::Interrupted => ExitCode::from(INTERRUPTED),
    })
}

/// Returns the token, and whether it was just generated.
fn token(args: &McpArgs, invocation: &Invocation) -> Result<(Token, bool), Failure> {
    if let Some(named) = &args.token_file {
        let path = invocation.file(named)?;
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Io {
            action: "read the token file",
            path: path.clone(),
            source,
        })?;
        let token = Token::new(&text).map_err(|error| unfit(&error, &path.display().to_string()))?;
        return Ok((token, false));
    }
    if let Some(text) = invocation.mcp_token() {
        let token = Token::new(&text.to_string_lossy()).map_err(|error| unfit(&error, "BACKTRAIL_MCP_TOKEN"))?;
        return Ok((token, false));
    }
    let token = Token::random().map_err(|error| Error::Internal(error.to_string()))?;
    Ok((token, true))
}

fn unfit(error: &backtrail_server::TokenError, place: &str) -> Failure {
    Failure::usage(format!("{place}: {error}"), Some("create one with: openssl rand -hex 32"))
}

fn tell_ready(address: SocketAddr, secret: Option<&str>, invocation: &Invocation) {
    let output = &invocation.output;
    output.tell(&format!("serving at http://{address}/mcp"));
    match secret {
        Some(secret) => output.tell(&format!("clients must send: Authorization: Bearer {secret}")),
        None => output.note("clients must send your token as: Authorization: Bearer TOKEN"),
    }
}
