//! The answers of the server name files that checkpoints can't hold any more.

use serde_json::json;

use super::client::Client;
use crate::dropped::{grown, too_large};

#[test]
fn save_list_and_status_report_a_dropped_file() {
    let place = grown();
    let mut client = Client::start(&place);
    let saved = client.ok("checkpoint_save", json!({ "message": "grown" }));
    assert_eq!((&saved["dropped"], &saved["checkpoint"]["dropped"]), (&too_large("grown.bin"), &1.into()));
    let again = client.ok("checkpoint_save", json!({ "message": "again" }));
    assert_eq!((&again["dropped"], &again["created"]), (&json!([]), &false.into()));
    let status = client.ok("workspace_status", json!({}));
    assert_eq!(status["unprotected"], too_large("grown.bin"));
    let listed = client.ok("checkpoint_list", json!({}));
    assert_eq!(listed["checkpoints"][0]["dropped"], 1);
}
