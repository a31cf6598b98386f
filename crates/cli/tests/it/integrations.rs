//! The files in `integrations/`: they have the entries that `install` writes, and the skill runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::place::Place;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations").canonicalize().unwrap()
}

fn json(path: PathBuf) -> Value {
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn plugins_have_the_hooks_that_install_writes() {
    let agents = [
        ("claude", "claude-code/hooks/hooks.json", "home/.claude/settings.json"),
        ("codex", "codex/hooks/hooks.json", "home/.codex/hooks.json"),
        ("gemini", "gemini/hooks/hooks.json", "home/.gemini/settings.json"),
    ];
    for (agent, plugin, installed) in agents {
        let place = Place::new();
        place.ok(["install", agent]);
        let program = env!("CARGO_BIN_EXE_backtrail");
        let text = fs::read_to_string(place.path(installed)).unwrap().replace(program, "backtrail");
        let installed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json(directory().join(plugin))["hooks"], installed["hooks"], "{plugin}");
    }
}

#[test]
fn plugins_have_the_mcp_server_and_the_version_of_the_program() {
    let server = serde_json::json!({ "command": "backtrail", "args": ["mcp"] });
    for file in ["claude-code/.mcp.json", "codex/.mcp.json", "gemini/gemini-extension.json"] {
        let mut found = json(directory().join(file))["mcpServers"]["backtrail"].clone();
        if file.starts_with("codex") {
            // Codex passes only the named variables to a server.
            let passed = found.as_object_mut().unwrap().remove("env_vars");
            assert_eq!(passed, Some(serde_json::json!(["BACKTRAIL_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"])));
        }
        assert_eq!(found, server, "{file}");
    }
    for file in
        ["claude-code/.claude-plugin/plugin.json", "codex/.codex-plugin/plugin.json", "gemini/gemini-extension.json"]
    {
        let plugin = json(directory().join(file));
        assert_eq!(plugin["name"], "backtrail", "{file}");
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"), "{file}");
    }
}

const SKILL: &str = r#"
import asyncio, pathlib
from scripts.checkpoint_manager import CheckpointManager, EngineError
from scripts.rollback_handler import RollbackHandler
from scripts import git_snapshot, state_snapshot

async def main():
    project = pathlib.Path(".")
    manager = CheckpointManager(project)
    checkpoint = await manager.create_checkpoint(
        name="before-refactor", description="State before major refactoring", session_number=5, token_usage=45000)
    said = checkpoint.to_dict()
    assert said["checkpoint_type"] == "manual" and said["context"] == {"session_number": 5, "token_usage": 45000}, said
    assert said["feature_state"]["current"] == "f2" and said["feature_state"]["completed"] == ["f1"], said
    assert (project / said["feature_state"]["snapshot_path"]).read_text() == (project / "feature_list.json").read_text()
    assert git_snapshot.capture(project).branch == checkpoint.git_state.branch
    assert state_snapshot.capture(project).current == "f2"

    (project / "a").write_text("2")
    (project / ".env").unlink()
    (project / "new").write_text("n")
    (project / "feature_list.json").write_text("{}")
    handler = RollbackHandler(project)
    changed = {change["path"]: change["status"] for change in handler.preview(checkpoint.id)}
    assert changed == {".env": "added", "a": "modified", "feature_list.json": "modified", "new": "deleted"}, changed
    assert await manager.rollback(checkpoint.id)
    assert (project / "a").read_text() == "1" and (project / ".env").read_text() == "S" and not (project / "new").exists()
    assert "f2" in (project / "feature_list.json").read_text()
    assert handler.undo() and (project / "new").exists()
    assert await manager.rollback_to_latest() and not (project / "new").exists()

    feature = await manager.create_checkpoint("done", checkpoint_type="feature")
    assert [one.id for one in await manager.list_checkpoints()] == [feature.id, checkpoint.id]
    assert (await manager.get_checkpoint(feature.id)).name == "done"
    for refused in (manager.delete_checkpoint(feature.id), manager.rollback("no-such")):
        try:
            await refused
        except EngineError:
            continue
        raise AssertionError("it was not refused")
    assert await manager.delete_checkpoint(feature.id, force=True)
    assert not await manager.delete_checkpoint(feature.id)

asyncio.run(main())
"#;

/// Skipped without a recent version of Python.
#[test]
fn the_skill_saves_and_restores() {
    let version = Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).status();
    if !version.is_ok_and(|status| status.success()) {
        return;
    }
    let place = Place::new();
    place.write("a", "1");
    place.write(".env", "S");
    place.write(".gitignore", ".env\nfeature_list.json\n");
    place.write("feature_list.json", r#"{"current": "f2", "completed": ["f1"]}"#);
    let program = Path::new(env!("CARGO_BIN_EXE_backtrail")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let base = place.command(&place.path("ws"), [""; 0]);
    let mut python = Command::new("python3");
    // `-S` hides installed packages: the skill must work with the command alone.
    python.args(["-S", "-B", "-c", SKILL]).current_dir(place.path("ws")).env_clear();
    python.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
    python.env("PATH", path).env("PYTHONPATH", directory().join("skills/checkpoint-manager"));
    let done = python.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
