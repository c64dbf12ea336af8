//! `refault-run doctor` as a user meets it. Its findings depend on the machine; that they agree
//! with each other does not.

use crate::common::command::Sandbox;
use serde_json::Value;

#[test]
fn json_and_text_say_the_same() {
    let s = Sandbox::new();
    let dir = s.path(".");
    let args = ["doctor", "--swap-file", dir.to_str().expect("plain text")];
    let json = s.run(&[&args[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(found["refault"], env!("CARGO_PKG_VERSION"));
    let works = found["verdict"] != "nothing";
    assert_eq!(json.status.code(), Some(if works { 0 } else { 1 }));
    assert_eq!(found["moves"]["works"], works);
    assert_eq!(found["why"].is_null(), found["verdict"] == "everything");
    assert_eq!(found["improvement"].is_null(), found["why"].is_null());
    assert_eq!(found["features"]["MOVE"].as_bool(), found["features"].as_object().map(|f| f["MOVE"] == true));

    // Where there is userfaultfd for all, the C library is one that is known, or it says which of
    // its functions are not.
    let new_memory = &found["new_memory"];
    let said = new_memory["error"].as_str();
    assert_eq!(new_memory["works"] == true, said.is_none(), "{found}");

    // Whether io_uring works or not: regions have to ask for it.
    assert_eq!(found["swap_io"], "pwritev");

    let text = s.run(&args);
    assert_eq!(text.status.code(), json.status.code());
    let text = String::from_utf8(text.stdout).expect("text");
    assert_eq!(text.contains("The pager works here"), works, "{text}");
    let watched = if said.is_none() { "watched before it is touched" } else { "not watched before it is touched: " };
    assert!(text.contains(&format!("new memory of programs  {watched}{}", said.unwrap_or_default())), "{text}");
    let awake = found["stays_awake"]["error"].as_str().map_or("yes".to_owned(), |e| format!("no: {e}"));
    assert!(text.contains(&format!("processors kept awake   {awake}")), "{text}");
    for value in [&found["kernel"], &found["improvement"], &found["swap_io"]].into_iter().filter_map(Value::as_str) {
        assert!(text.contains(value), "{value} in {text}");
    }
}

#[test]
fn a_place_for_swap_files_that_is_none() {
    let refused = Sandbox::new().run(&["doctor", "--swap-file", "not/there"]);
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.starts_with("error: ") && line.contains("not/there: is no directory"), "{line}");
}
