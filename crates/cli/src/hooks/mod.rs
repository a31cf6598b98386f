//! What agents say through their hooks, and what is done about it.

mod agent;

pub(crate) use agent::Agent;
