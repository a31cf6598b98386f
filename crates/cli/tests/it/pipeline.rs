//! `pipeline`: steps from a file, with checkpoints around them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snapbox::str;

use crate::place::{Place, Run, WAIT_FOR_THE_LOCK, assert_shown};

fn write_pipeline(place: &Place, text: &str) {
    fs::write(place.path("pipe.yaml"), text).unwrap();
}

fn run(place: &Place, text: &str, options: &[&str]) -> Run {
    write_pipeline(place, text);
    place.run(["pipeline", "--json", "../pipe.yaml"].into_iter().chain(options.iter().copied()))
}

/// Runs a pipeline that must exit with this code. Returns its steps.
fn steps(place: &Place, text: &str, options: &[&str], code: i32) -> Vec<Value> {
    let run = run(place, text, options);
    assert_eq!(run.code, code, "{}", run.shown());
    run.json()["steps"].as_array().unwrap().clone()
}

fn statuses(steps: &[Value]) -> Vec<&str> {
    steps.iter().map(|step| step["status"].as_str().unwrap()).collect()
}

/// Runs an invalid pipeline. Returns the error message.
fn error_message(place: &Place, text: &str, options: &[&str]) -> String {
    let run = run(place, text, options);
    let (code, word, message) = run.error();
    assert_eq!((code, word.as_str()), (2, "pipeline"), "{}", run.shown());
    message
}

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read_to_string(place.path("ws").join(name)).ok()
}

/// Adds a shell script to the PATH of the place.
fn install_program(place: &mut Place, name: &str, script: &str) {
    let directory = place.path("bin");
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    place.set("PATH", &path);
}

#[test]
fn the_steps_and_the_failed_step_are_printed() {
    let place = Place::saved();
    write_pipeline(
        &place,
        "steps:\n  - name: good\n    run: echo said\n    checkpoint: true\n  - run: exit 9\n  - run: touch never\n",
    );
    assert_shown!(
        place.run(["pipeline", "../pipe.yaml"]),
        str![[r#"
said
--- stderr
step 1 of 3: good
checkpoint [ID] "good"
step 2 of 3: step-2
warning: step "step-2": it exited with 9
stopped at step 2 of 3, "step-2"; continue there with: backtrail pipeline ../pipe.yaml --from-step step-2
--- exit 1

"#]]
    );
}

#[test]
fn json_steps_have_exactly_these_keys() {
    let place = Place::saved();
    let steps = steps(&place, "steps: [{run: echo on stdout}, {run: 'true'}]", &[], 0);
    assert_eq!(
        steps[0].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["name", "status", "checkpoint", "exit_code", "seconds", "dropped", "not_taken_back"]
    );
    assert_eq!((&steps[0]["name"], &steps[1]["name"]), (&"step-1".into(), &"step-2".into()));
}

#[test]
fn json_lists_the_conflicts_of_a_rollback() {
    let place = Place::saved();
    let text = "steps:\n  - name: odd\n    run: rm a.txt; mkfifo a.txt; exit 5\n    on_failure: rollback\n";
    let steps = steps(&place, text, &[], 1);
    assert_eq!(statuses(&steps), ["rolled_back"]);
    assert_eq!(steps[0]["conflicts"][0]["path"], "a.txt", "{steps:?}");
}

/// Regression: the pipeline exited with the status of the restore, and its answer had no steps.
#[test]
fn a_failed_rollback_fails_the_step_and_names_the_checkpoint() {
    let place = Place::saved();
    let text = format!("steps:\n  - run: 'echo bad > a.txt; {WAIT_FOR_THE_LOCK}; exit 5'\n    on_failure: rollback\n");
    fs::write(place.path("held.yaml"), text).unwrap();
    let run = place.run_while_locked(["--wait", "0", "--json", "pipeline", "../held.yaml"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    let step = run.json()["steps"][0].clone();
    assert_eq!((&step["status"], &step["exit_code"]), (&"failed".into(), &5.into()));
    let hint = step["rollback_error"]["hint"].as_str().unwrap();
    assert!(run.stderr.contains("error: not rolled back: ") && run.stderr.contains(hint), "{}", run.stderr);
    let id = hint.rsplit(' ').next().unwrap();
    place.ok(["restore", id]);
    assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_step_with_a_checkpoint_is_found_by_name_and_by_plain_git() {
    let place = Place::saved();
    let text = "name: build\nsteps:\n  - {name: implement, run: echo 2 > a.txt, checkpoint: true}\n  \
                - {name: broken, run: exit 1, checkpoint: true}\n";
    let steps = steps(&place, text, &[], 1);
    let made = place.json(["show", "implement"])["checkpoint"].clone();
    assert_eq!((&made["id"], &made["kind"]), (&steps[0]["checkpoint"], &"manual".into()));
    assert_eq!(
        (&made["message"], &made["metadata"]["pipeline"]),
        (&"architect:checkpoint:implement".into(), &"build".into())
    );
    assert_eq!(steps[1]["checkpoint"], Value::Null);
    let found = place.ok(["git", "log", "--no-walk", "--all", "--format=%s", "--grep=architect:checkpoint"]);
    assert_eq!(found, "architect:checkpoint:implement\n", "a failed step got a checkpoint");
}

#[test]
fn automatic_checkpoints_are_taken_before_steps_as_configured() {
    let automatic = |section: &str| {
        let place = Place::saved();
        let steps = (1..=5).map(|n| format!("  - run: echo {n} > n\n")).collect::<String>();
        let text = format!("{section}\nsteps:\n{steps}");
        assert_eq!(run(&place, &text, &[]).code, 0);
        let list = place.json(["list", "--kind", "automatic"]);
        let messages = list["checkpoints"].as_array().unwrap().iter().map(|made| made["message"].clone().to_string());
        messages
            .filter_map(|message| message.split("step-").nth(1).map(|rest| rest[..1].to_owned()))
            .collect::<String>()
    };
    assert_eq!(automatic("name: x"), "5432", "nothing had changed before the first step");
    assert_eq!(automatic("checkpoints: {every_n_steps: 2}"), "53");
    assert_eq!(automatic("checkpoints: {enabled: false}"), "");
}

#[test]
fn a_rollback_works_without_automatic_checkpoints() {
    let place = Place::saved();
    place.write("a.txt", "unsaved\n");
    let text = "checkpoints: {enabled: false}\nsteps:\n  - run: echo 2 > a.txt; touch new; exit 5\n    on_failure: rollback\n  \
                - run: touch never\n";
    let steps = steps(&place, text, &[], 1);
    assert_eq!(statuses(&steps), ["rolled_back", "skipped"]);
    assert_eq!((&steps[0]["exit_code"], &steps[1]["exit_code"]), (&5.into(), &Value::Null));
    assert_eq!((read(&place, "a.txt").as_deref(), read(&place, "new")), (Some("unsaved\n"), None));
    place.ok(["undo"]);
    assert_eq!(read(&place, "a.txt").as_deref(), Some("2\n"));
}

#[test]
fn a_step_keeps_a_pin_of_the_user() {
    let place = Place::saved();
    place.ok(["pin", "@"]);
    assert_eq!(run(&place, "steps: [{run: 'false', on_failure: rollback}]", &[]).code, 1);
    assert_eq!(place.json(["show", "@"])["checkpoint"]["pinned"], true);
}

#[test]
fn values_of_variables_are_never_run() {
    let place = Place::saved();
    let text = r#"
variables:
  evil: "'; touch hacked; \" $(touch hacked) `touch hacked` *"
  version: 1.10
steps:
  - run: printf '%s\n' {{evil}} > bare
  - run: printf '%s\n' "<{{evil}}>" > double
  - run: printf '%s\n' '<{{evil}}>' > single
  - run: printf '%s\n' "$evil" > environment
  - run: printf '%s\n' {{ version }}{{version}} > version
  - run: printf %s {{evil}}
    output_var: said
  - run: test {{said}} = {{evil}}
    checks:
      - test "{{said}}" = "$evil"
"#;
    assert_eq!(statuses(&steps(&place, text, &[], 0)), ["success"; 7]);
    let evil = "'; touch hacked; \" $(touch hacked) `touch hacked` *";
    assert_eq!(read(&place, "bare"), Some(format!("{evil}\n")));
    assert_eq!(read(&place, "double"), Some(format!("<{evil}>\n")));
    assert_eq!(read(&place, "single"), Some(format!("<{evil}>\n")));
    assert_eq!(read(&place, "environment"), Some(format!("{evil}\n")));
    assert_eq!(read(&place, "version").as_deref(), Some("1.101.10\n"));
    assert_eq!(read(&place, "hacked"), None);
}

#[test]
fn a_prompt_is_one_argument_and_is_never_run() {
    let mut place = Place::saved();
    install_program(&mut place, "stand-in", r#"printf '%s|' "$#" "$@" >> asked; echo "answer to $1""#);
    let text = r#"
agent: stand-in {prompt} --model={model}
variables: {thing: "a; b $(touch hacked)"}
steps:
  - prompt: "do {{thing}}\n'now' {model}"
    model: m1
    output_var: answer
  - run: printf %s {{answer}} > answer
"#;
    assert_eq!(statuses(&steps(&place, text, &[], 0)), ["success", "success"]);
    let prompt = "do a; b $(touch hacked)\n'now' {model}";
    assert_eq!(read(&place, "asked"), Some(format!("2|{prompt}|--model=m1|")));
    assert_eq!(read(&place, "answer"), Some(format!("answer to {prompt}")));
    assert_eq!(read(&place, "hacked"), None);
}

#[test]
fn the_most_specific_agent_is_used() {
    let mut place = Place::saved();
    for name in ["of-line", "of-step", "of-file", "of-user"] {
        install_program(&mut place, name, &format!("echo {name} >> asked"));
    }
    let settings = place.path("home/.config/backtrail");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[pipelines]\nagent = \"of-user {prompt}\"\n").unwrap();
    let file = "agent: of-file {prompt}\nsteps: [{prompt: a, agent: 'of-step {prompt}'}, {prompt: b}]";
    run(&place, file, &[]);
    run(&place, "steps: [{prompt: c}]", &[]);
    run(&place, file, &["--agent", "of-line {prompt}"]);
    assert_eq!(read(&place, "asked").as_deref(), Some("of-step\nof-file\nof-user\nof-line\nof-line\n"));
}

#[test]
fn workspace_settings_cannot_set_an_agent() {
    let place = Place::saved();
    place.write("backtrail.toml", "[pipelines]\nagent = \"touch {prompt}\"\n");
    let run = run(&place, "steps: [{prompt: hacked}]", &[]);
    let (code, word, message) = run.error();
    assert_eq!((code, word.as_str()), (2, "settings"), "{message}");
    assert_eq!(read(&place, "hacked"), None);
}

#[test]
fn invalid_files_are_reported_before_the_first_step() {
    let place = Place::saved();
    let first = "steps:\n  - run: touch ran\n";
    let table = [
        ("steps: [ {name: x, run: [\n", &["line 1", "["][..]),
        ("", &["end of file"]),
        ("- a\n", &["line 1"]),
        ("name: x\n", &["steps"]),
        ("steps: []\n", &["line 1", "steps is empty"]),
        ("steps:\n  - name: x\n    rum: typo\n", &["line 3", "rum"]),
        ("steps:\n  - run: [a]\n", &["line 2", "run"]),
        ("steps:\n  - {run: a, on_failure: explode}\n", &["line 2", "explode"]),
        ("steps:\n  - run: a\n    checkpoint: maybe\n", &["line 3", "checkpoint"]),
        ("steps:\n  - run: a\n    run: b\n", &["line 3", "run"]),
        ("checkpoints:\n  every_n_steps: 51\nsteps: [{run: a}]\n", &["line 2", "every_n_steps", "50"]),
        ("checkpoints:\n  often: 3\nsteps: [{run: a}]\n", &["line 2", "often"]),
        ("variables:\n  a-b: 1\nsteps: [{run: a}]\n", &["line 2", "a-b"]),
        (&format!("{first}  - name: both\n    run: a\n    prompt: b\n"), &["line 5", "both", "prompt"]),
        (&format!("{first}  - name: none\n"), &["line 3", "none", "prompt"]),
        (&format!("{first}  - prompt: ''\n"), &["line 3", "prompt is empty"]),
        (&format!("{first}  - prompt: hi\n"), &["line 3", "agent"]),
        (&format!("{first}  - prompt: hi\n    agent: build\n"), &["line 4", "build", "{prompt}"]),
        (
            &format!("{first}  - prompt: hi\n    agent: no-such-agent-anywhere {{prompt}}\n"),
            &["line 3", "no-such-agent"],
        ),
        (&format!("{first}  - prompt: hi\n    agent: sh {{model}} {{prompt}}\n"), &["line 3", "model"]),
        (&format!("{first}  - run: a\n    agent: sh {{prompt}}\n"), &["line 3", "prompt"]),
        (&format!("{first}  - run: echo {{{{unset}}}}\n"), &["line 3", "run", "{{unset}}"]),
        (&format!("{first}  - run: a\n    checks: [test {{{{unset}}}}]\n"), &["line 4", "checks", "{{unset}}"]),
        (&format!("{first}  - run: a\n    condition: \"{{{{unset}}}}\"\n"), &["line 4", "condition", "{{unset}}"]),
        (&format!("{first}  - run: echo {{{{late}}}}\n  - run: a\n    output_var: late\n"), &["line 3", "{{late}}"]),
        (&format!("{first}  - run: a\n    output_var: 1x\n"), &["line 4", "output_var"]),
        (&format!("{first}  - run: a\n    timeout: soon\n"), &["line 4", "timeout", "soon"]),
        (&format!("{first}  - run: a\n    timeout: 0\n"), &["line 4", "timeout"]),
        (&format!("{first}  - run: a\n    timeout: -5\n"), &["line 4", "timeout"]),
        (&format!("{first}  - run: a\n    checks: {{a: b}}\n"), &["line 4", "checks"]),
        (&format!("{first}  - {{name: x, run: a}}\n  - {{name: x, run: a}}\n"), &["line 4", "x"]),
        (&format!("{first}  - {{name: latest, run: a, checkpoint: true}}\n"), &["line 3", "latest"]),
        (&format!("{first}---\n{first}"), &["multiple"]),
    ];
    for (text, words) in table {
        let message = error_message(&place, text, &[]);
        let missing: Vec<_> = words.iter().filter(|word| !message.contains(**word)).collect();
        assert!(missing.is_empty() && message.contains("pipe.yaml"), "{text:?}: {missing:?} not in {message:?}");
    }
    assert!(error_message(&place, first, &["--from-step", "nowhere"]).contains("nowhere"));
    assert!(error_message(&place, first, &["--var", "a b=1"]).contains("a b"));
    assert!(error_message(&place, "steps: [{prompt: x}]", &["--agent", "build"]).contains("--agent"));
    fs::write(place.path("raw.yaml"), b"name: x\nsteps: \xff\n").unwrap();
    for (name, word) in [("raw.yaml", "line 2: not UTF-8"), ("missing.yaml", "no such file")] {
        let (code, code_word, message) = place.run(["run", "--json", &format!("../{name}")]).error();
        assert_eq!((code, code_word.as_str()), (2, "pipeline"));
        assert!(message.contains(name) && message.contains(word), "{message}");
    }
    assert_eq!(read(&place, "ran"), None, "a step was run before the error was reported");
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 1, "a checkpoint was taken");
}

#[test]
fn errors_have_a_hint() {
    let place = Place::saved();
    let hint = |text: &str, options: &[&str]| run(&place, text, options).json()["error"]["hint"].to_string();
    assert!(hint("steps:\n  - run: a\n    condition: {{x}}\n", &[]).contains("quotes"));
    assert!(hint("steps: [{run: 'echo {{x}}'}]", &[]).contains("--var x="));
    assert!(hint("steps: [{prompt: x}]", &[]).contains("--agent"));
    let later = "steps: [{name: a, run: b, output_var: x}, {name: c, run: 'echo {{x}}'}]";
    assert!(hint(later, &["--from-step", "c"]).contains("but is not run"), "{}", hint(later, &["--from-step", "c"]));
    assert_eq!(run(&place, later, &["--from-step", "c", "--var", "x=1"]).code, 0);
}

#[test]
fn conditions_skip_steps_and_leave_their_variables_empty() {
    let place = Place::saved();
    let text = r#"
variables: {yes_please: "2", nope: "off", nothing: }
steps:
  - {name: a, run: 'true', condition: "{{yes_please}}"}
  - {name: b, run: echo b, condition: "{{nope}}", output_var: unset}
  - {name: c, run: 'true', condition: "{{nothing}}"}
  - {name: d, run: 'true', condition: test -e a.txt}
  - {name: e, run: 'true', condition: test -e missing}
  - {name: f, run: 'true', condition: false}
  - {name: g, run: 'true', condition: ''}
  - {name: h, run: 'test -z {{unset}}', condition: yes}
"#;
    let done = steps(&place, text, &[], 0);
    assert_eq!(
        statuses(&done),
        ["success", "skipped", "skipped", "success", "skipped", "skipped", "skipped", "success"]
    );
    let broken = steps(&place, "steps: [{run: 'true', condition: no-such-command-anywhere}]", &[], 1);
    assert_eq!((statuses(&broken), &broken[0]["exit_code"]), (vec!["failed"], &127.into()));
}

#[test]
fn a_failed_check_fails_the_step() {
    let place = Place::saved();
    let text = "steps:\n  - {run: touch one, checks: test -e one, on_failure: continue}\n  \
                - {run: touch two, checks: [test -e two, exit 3, touch never], on_failure: continue}\n  \
                - {run: exit 4, checks: touch never, on_failure: continue}\n";
    let done = steps(&place, text, &[], 1);
    assert_eq!(statuses(&done), ["success", "failed", "failed"]);
    assert_eq!(done.iter().map(|step| step["exit_code"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 4]);
    assert_eq!(read(&place, "never"), None);
}

#[test]
fn a_step_that_times_out_is_killed_and_rolled_back() {
    let place = Place::saved();
    for timeout in ["1", "0.5", "1s"] {
        let text = format!(
            "steps:\n  - run: echo 2 > a.txt; (sleep 60; touch late) & sleep 60\n    timeout: {timeout}\n    on_failure: rollback\n"
        );
        let began = Instant::now();
        let done = steps(&place, &text, &[], 1);
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!((statuses(&done), &done[0]["exit_code"]), (vec!["rolled_back"], &124.into()));
        assert_eq!(read(&place, "a.txt").as_deref(), Some("one\ntwo\n"));
    }
}

#[test]
fn output_that_is_too_large_or_not_text_fails_the_step() {
    let place = Place::saved();
    for command in ["head -c 70000 /dev/zero | tr '\\0' x", "printf '\\377'", "printf 'a\\0b'"] {
        let text = format!("steps:\n  - run: |\n      {command}\n    output_var: x\n");
        let done = steps(&place, &text, &[], 1);
        assert_eq!(statuses(&done), ["failed"], "{command}");
    }
    let text =
        "steps: [{run: sleep 60 2>/dev/null & echo quick, output_var: x, timeout: 40}, {run: 'test {{x}} = quick'}]";
    let began = Instant::now();
    assert_eq!(statuses(&steps(&place, text, &[], 0)), ["success", "success"]);
    assert!(began.elapsed() < Duration::from_secs(30), "background processes are not waited for");
}

#[test]
fn a_dry_run_shows_everything_and_does_nothing() {
    let place = Place::new();
    place.write("a.txt", "1\n");
    write_pipeline(
        &place,
        "name: show\nvariables: {w: x}\nsteps:\n  - {name: one, run: touch ran, checkpoint: true}\n  - name: two\n    \
         prompt: \"say 'hi' to {{w}}\\nand more\"\n    agent: sh -c {prompt}\n    condition: test -e a.txt\n    \
         on_failure: rollback\n  - {name: three, run: 'false', on_failure: continue}\n",
    );
    assert_shown!(
        place.run(["run", "../pipe.yaml", "--dry-run", "--from-step", "two"]),
        str![[r#"
show
  1. one (not run)
     run touch ran
     then take a checkpoint
  2. two
     if test -e a.txt
     ask sh -c "say 'hi' to {{w}}"
     roll back if it fails
  3. three
     run false
     continue if it fails
--- exit 0

"#]]
    );
    let answer = place.json(["run", "../pipe.yaml", "--dry-run", "--from-step", "two"]);
    assert_eq!(statuses(answer["steps"].as_array().unwrap()), ["skipped", "dry_run", "dry_run"]);
    assert!(!place.path("home/backtrail").exists() && read(&place, "ran").is_none());
}

#[test]
fn an_interrupt_ends_the_step_and_the_pipeline() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::saved();
        write_pipeline(
            &place,
            "steps:\n  - {name: a, run: touch done}\n  - name: b\n    run: echo 2 > a.txt; touch ready; exec sleep 60\n    \
             on_failure: rollback\n  - {name: c, run: touch never}\n",
        );
        let mut command = place.command_with_default_signals(["run", "--json", "../pipe.yaml"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while read(&place, "ready").is_none() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains("interrupted at step 2 of 3, \"b\"") && stderr.contains("--from-step b"), "{stderr}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(statuses(answer["steps"].as_array().unwrap()), ["success", "rolled_back", "skipped"]);
        assert_eq!((read(&place, "a.txt").as_deref(), read(&place, "never")), (Some("one\ntwo\n"), None));
    }
}

/// Runs every example of docs/pipelines.md. `claude` is a script that records its arguments.
#[test]
fn the_examples_of_the_documentation_run() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pipelines.md")).unwrap();
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4, "{} examples", examples.len());
    for example in examples {
        let mut place = Place::saved();
        install_program(&mut place, "claude", r#"echo "$@" >> answers; echo done"#);
        let done = steps(&place, example, &[], 0);
        assert!(statuses(&done).contains(&"success"), "{example}");
    }
}
