//! `ui`: the server of the page, by raw requests.

mod access;
mod api;
mod server;
mod trouble;
