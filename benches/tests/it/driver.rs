//! The driver of the system benchmark, on the sides that need no other program.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Short rounds of a build for tests may well be void, which is the exit code's business alone.
fn drive(dir: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_system"))
        .args(["--seconds", "0.1", "--append-mib", "2", "--dir"])
        .arg(dir)
        .args(options)
        .output()
        .unwrap()
}

fn lines(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tried(dir: &Path) -> Vec<(u64, String, String)> {
    let lines = lines(dir);
    let tried = lines.iter().filter_map(|line| line.get("tried"));
    tried
        .map(|trial| {
            assert!(trial["outcome"].get("measured").is_some(), "{trial}");
            let text = |field: &str| trial[field].as_str().unwrap().to_owned();
            (trial["round"].as_u64().unwrap(), text("case"), text("side"))
        })
        .collect()
}

#[test]
fn the_driver_reports_its_rounds_and_leaves_no_data_behind() {
    let dir = tempfile::tempdir().unwrap();
    let markdown = dir.path().join("BASELINE.md");
    std::fs::write(
        &markdown,
        "# System benchmark\n\nold\n\n## Causes\n\nKept.\n\n# SQL benchmark\n\nKept, too.\n",
    )
    .unwrap();
    let options = ["--rounds", "2", "--only", "W1-raw,W7-ack", "--sides", "null,floor", "--markdown"];
    let output = drive(dir.path(), &[&options[..], &[markdown.to_str().unwrap()]].concat());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("| rounds | 2 of 0.1 s"), "{report}\n{:?}", output.stderr);
    let expect = [
        (1, "W1Raw", "floor"),
        (1, "W1Raw", "null"),
        (1, "W7Ack", "floor"),
        (1, "W7Ack", "null"),
        (2, "W1Raw", "null"),
        (2, "W1Raw", "floor"),
        (2, "W7Ack", "null"),
        (2, "W7Ack", "floor"),
    ];
    let expect = expect.map(|(round, case, side)| (round, case.to_owned(), side.to_owned()));
    assert_eq!(tried(dir.path()), expect, "the order of sides turns by the round");
    let kept = std::fs::read_to_string(&markdown).unwrap();
    assert!(kept.starts_with(report.trim_end()), "{kept}");
    assert!(kept.ends_with("## Causes\n\nKept.\n\n# SQL benchmark\n\nKept, too.\n"), "{kept}");
    assert!(std::fs::read_to_string(dir.path().join("baseline.svg")).unwrap().ends_with("</svg>\n"));
    assert!(!dir.path().join("data").exists());
}

#[test]
fn what_a_side_has_acknowledged_is_verified_by_reading() {
    let dir = tempfile::tempdir().unwrap();
    let _output = drive(dir.path(), &["--rounds", "1", "--only", "W2-raw", "--sides", "floor"]);
    let lines = lines(dir.path());
    let measured = &lines.last().unwrap()["tried"]["outcome"]["measured"];
    let verified = &measured["verified"][0];
    let sent = measured["rows"][0]["seen"]["records_total"].as_u64().unwrap();
    assert!(sent > 0);
    for field in ["acknowledged", "end"] {
        assert_eq!(verified[field], sent, "{field}: {verified}");
    }
    assert_eq!((&verified["gaps"], &verified["read"]), (&0.into(), &sent.into()), "{verified}");
}

#[test]
fn a_run_that_was_interrupted_goes_on_and_another_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--rounds", "1", "--sides", "null", "--only"];
    let _output = drive(dir.path(), &[&options[..], &["W1-raw"]].concat());
    assert_eq!(tried(dir.path()).len(), 1);
    let first = lines(dir.path());
    let _output = drive(dir.path(), &[&options[..], &["W1-raw,W2-raw"]].concat());
    assert_eq!(lines(dir.path())[..first.len()], first[..], "what is there is not done again");
    assert_eq!(tried(dir.path()).len(), 2);

    let other = [&options[..], &["W1-raw", "--broker-arg", "--other"]].concat();
    let refused = drive(dir.path(), &other);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--restart"), "{refused:?}");
    let _output = drive(dir.path(), &[&other[..], &["--restart"]].concat());
    assert_eq!(tried(dir.path()).len(), 1);
}

#[test]
fn a_case_that_does_not_exist_is_refused_with_the_list_of_those_that_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = drive(dir.path(), &["--only", "W99"]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("`W99`") && said.contains("W5-16000"), "{said}");
}
