//! No answer of the server contains the contents of precious files.

use serde_json::{Value, json};

use super::client::Client;
use crate::place::Place;

/// Contents that no answer may contain. A hash or a length that reveals them is not allowed either.
const SECRETS: [&str; 4] = ["hunter2-first", "hunter2-second", "hunter2-key", "hunter2-third"];

fn place_with_secrets() -> Place {
    let place = Place::new();
    place.write(".gitignore", ".env\n.env.*\n*.key\n");
    place.write("backtrail.toml", "[scan]\nprecious = [\".env\", \".env.*\", \"*.key\"]\n");
    place.write(".env", format!("TOKEN={}\n", SECRETS[0]));
    place.write("app/.env.local", format!("TOKEN={}\n", SECRETS[0]));
    place.write("deploy.key", SECRETS[2]);
    place.write("a.txt", "one\n");
    place.ok(["save", "first"]);
    place.write(".env", format!("TOKEN={}\nMORE=1\n", SECRETS[1]));
    place.write("deploy.key", format!("{}\n{}", SECRETS[2], SECRETS[1]));
    place.write("a.txt", "two\n");
    place.ok(["save", "second"]);
    place.write(".env", format!("TOKEN={}\n", SECRETS[3]));
    place.remove("app/.env.local");
    place.write("a.txt", "three\n");
    place
}

#[test]
fn contents_of_precious_files_are_in_no_answer() {
    let place = place_with_secrets();
    let mut client = Client::start(&place);
    let second = place.id("@");
    let first = place.id("@~1");
    let assert_shows_path =
        |answer: &Value| assert!(answer.to_string().contains(".env"), "path and status are shown: {answer}");

    assert_shows_path(&client.ok("workspace_status", json!({})));
    assert_shows_path(&client.ok("workspace_status", json!({ "since": first })));
    assert_shows_path(&client.ok("checkpoint_show", json!({ "checkpoint": second })));
    for arguments in [
        json!({}),
        json!({ "from": first }),
        json!({ "to": first }),
        json!({ "to": second }),
        json!({ "from": first, "to": second }),
        json!({ "from": second, "to": first }),
        json!({ "paths": [".env"] }),
        json!({ "paths": [".env", "deploy.key", "app"], "from": first, "to": second }),
    ] {
        let diff = client.ok("checkpoint_diff", arguments);
        assert_shows_path(&diff);
        assert!(diff["hidden_files"].as_array().unwrap().contains(&json!(".env")), "{diff}");
        for change in diff["changes"].as_array().unwrap() {
            let is_precious = change["path"] != "a.txt" && change["path"] != ".gitignore";
            let is_precious = is_precious && change["path"] != "backtrail.toml";
            assert_eq!(change["hidden"], is_precious, "{change}");
            if is_precious {
                assert_eq!((&change["insertions"], &change["deletions"]), (&json!(0), &json!(0)), "{change}");
            }
        }
    }
    let blame = client.ok("blame", json!({ "path": ".env" }));
    assert_eq!((&blame["hidden"], &blame["ranges"], &blame["ranges_total"]), (&json!(true), &json!([]), &json!(0)));
    for arguments in [json!({}), json!({ "restore": first }), json!({ "revert": second })] {
        let hunks = client.ok("hunks", arguments);
        assert!(hunks["changes"].as_array().unwrap().iter().any(|change| change["hidden"] == true), "{hunks}");
        for change in hunks["changes"].as_array().unwrap() {
            let is_precious = change["path"] != "a.txt" && change["path"] != "backtrail.toml";
            assert_eq!(change["hidden"], is_precious, "{change}");
            assert!(!is_precious || change["hunks"].is_null(), "{change}");
        }
    }
    let plan = client.ok("revert_plan", json!({ "what": second }));
    let conflicts = plan["conflicts"].as_array().unwrap();
    let of_env = conflicts.iter().find(|conflict| conflict["path"] == ".env").unwrap();
    assert!(of_env["lines"].is_null() && of_env["kept"].is_null(), "{plan}");
    let plan = client.ok("revert_plan", json!({ "what": second, "markers": true, "paths": [".env"] }));
    client.ok("revert", json!({ "plan": plan["plan"] }));
    client.ok("undo", json!({}));
    let made = client.ok("fork", json!({ "name": "try" }));
    std::fs::write(place.path("ws-try/.env"), format!("TOKEN={}\n", SECRETS[1])).unwrap();
    let plan = client.ok("adopt", json!({ "directory": made["forks"][0]["path"] }));
    assert_shows_path(&client.ok("adopt", json!({ "plan": plan["plan"] })));
    client.ok("undo", json!({}));
    let history = client.ok("file_history", json!({ "path": ".env" }));
    assert_eq!(history["hidden"], true);
    for version in history["versions"].as_array().unwrap() {
        assert_eq!((&version["bytes"], &version["insertions"]), (&Value::Null, &json!(0)), "{history}");
    }
    assert_shows_path(&client.ok("restore_plan", json!({ "checkpoint": first })));
    let plan = client.ok("restore_plan", json!({ "checkpoint": first, "paths": [".env", "deploy.key"] }));
    assert_shows_path(&client.ok("restore_apply", json!({ "plan": plan["plan"] })));
    assert!(std::fs::read_to_string(place.path("ws/.env")).unwrap().contains(SECRETS[0]), "the file is restored");
    assert_shows_path(&client.ok("undo", json!({})));
    client.ok("checkpoint_save", json!({}));
    client.ok("checkpoint_list", json!({ "path": ".env", "grep": SECRETS[0] }));
    for word in ["@", "@~1", "@~2", &first, &second] {
        let uri = format!("backtrail://checkpoints/{}/diff", word.replace('@', "%40"));
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert_shows_path(&read["result"]);
    }
    client.ask("resources/read", json!({ "uri": "backtrail://timeline" }));
    client.ask("resources/list", json!({}));
    assert_no_secret_received(&client, &place);
}

#[test]
fn changed_settings_do_not_reveal_precious_files() {
    let place = place_with_secrets();
    let mut client = Client::start(&place);
    place.write("backtrail.toml", "[scan]\nprecious = []\n");
    let first = place.id("@~1");
    for arguments in [json!({}), json!({ "to": "@" }), json!({ "to": first }), json!({ "from": first })] {
        client.ok("checkpoint_diff", arguments);
    }
    place.write("backtrail.toml", "[scan\n");
    client.ok("checkpoint_diff", json!({}));
    assert_no_secret_received(&client, &place);
}

fn assert_no_secret_received(client: &Client, place: &Place) {
    assert!(client.received.contains("three") || client.received.contains("two"), "other files are shown");
    for secret in SECRETS {
        assert!(!client.received.contains(secret), "{secret} was sent");
    }
    // A short secret can be guessed from its id, so the id must not be sent either.
    for name in ["ws/.env", "ws/deploy.key"] {
        let bytes = std::fs::read(place.path(name)).unwrap();
        let listed =
            std::process::Command::new("git").args(["hash-object", "--no-filters"]).arg(place.path(name)).output();
        let id = String::from_utf8(listed.unwrap().stdout).unwrap();
        assert!(id.trim().len() == 40 && !bytes.is_empty());
        assert!(!client.received.contains(id.trim()), "the id of {name} was sent");
    }
}
