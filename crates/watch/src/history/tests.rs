//! Hours that go on, are over, were cut, and are too old.

use super::*;
use crate::advice::LimitAdvice;
use crate::figures::Figures;
use crate::group::{CurveSettings, GroupCurve};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use refault_mm::{Config, Policy};

fn report(path: &str) -> GroupReport {
    let config = Config::new(Policy::Lru);
    let settings = CurveSettings { config, one_in: 64, window_ns: 1, most_units: 1, is_counted: false };
    let curve = GroupCurve::new(settings, 64_000, 0).expect("a curve").curve();
    let figures = Figures { usage_bytes: 7, ..Figures::default() };
    GroupReport {
        path: path.to_owned(),
        name: None,
        figures,
        around_bytes: 9,
        hit_rate_now: Some(0.5),
        read_bytes_per_s_now: 0.0,
        is_old: false,
        advice: LimitAdvice::of(&curve, &figures, 0.1),
        curve,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).expect("there").flatten();
    let mut all: Vec<_> = all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[test]
fn hours_have_names() {
    assert_eq!(hour(0), "1970-01-01T00");
    assert_eq!(hour(1_795_885_200_000), "2026-11-28T17");
    assert_eq!(hour(1_709_251_199_000), "2024-02-29T23");
    assert!(is_hour("2026-11-28T17") && !is_hour("2026-11-28") && !is_hour("2026-11-28T1x"));
}

#[test]
fn an_hour_that_is_over_becomes_parquet_and_an_old_one_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = folder.path().join(format!("{}.jsonl", hour(now_ms() - 7_200_000)));
    append(&left, &[report("/a"), report("/b")], 5).expect("writable");
    // A line that was cut when its watcher was killed.
    let mut file = OpenOptions::new().append(true).open(&left).expect("there");
    file.write_all(b"{\"time_ms\":6,\"gro").expect("writable");
    fs::write(folder.path().join("2020-01-01T00.parquet"), "old").expect("writable");
    fs::write(folder.path().join("notes.txt"), "mine").expect("writable");
    let before = hour(now_ms() - 3_600_000);
    fs::write(folder.path().join(format!("{before}.parquet")), "the hour before").expect("writable");
    let mut history = History::open(folder.path(), Duration::from_secs(86_400)).expect("a folder");
    assert_eq!(history.add(&[report("/a")]), Ok(None));
    fs::remove_file(folder.path().join(format!("{before}.parquet"))).expect("kept");
    let packed = left.with_extension("parquet");
    let now = format!("{}.jsonl", history.hour);
    assert_eq!(
        names(folder.path()),
        [packed.file_name().expect("a name").to_string_lossy(), now.into(), "notes.txt".into()]
    );
    let reader = SerializedFileReader::new(File::open(&packed).expect("there")).expect("Parquet");
    let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
    assert_eq!(rows.len(), 2 * PERCENT.len());
    assert!(
        rows[0].contains("group: \"/a\"") && rows[0].contains("one_in: 64") && rows[0].contains("percent: 2,"),
        "{}",
        rows[0]
    );
}

#[test]
fn a_line_that_was_cut_is_mended_before_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h");
    fs::write(&path, "{}\n{\"half").expect("writable");
    assert_eq!(append(&path, &[report("/a")], 5), Ok(None));
    let text = fs::read_to_string(&path).expect("there");
    assert!(text.starts_with("{}\n{") && text.ends_with("}\n") && text.lines().count() == 2, "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn what_is_no_line_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("2020-01-01T00.jsonl");
    fs::write(&path, "{}\n").expect("writable");
    let to = folder.path().join("x.parquet");
    let e = pack(&path, &to).expect_err("no curve");
    assert!(e.contains("T00.jsonl:1: has no curve") && !to.exists(), "{e}");
}

/// A clock that jumped ahead made all history old, and it was removed.
#[test]
fn regression_a_clock_that_jumps_removes_no_history() {
    const HOUR_MS: u64 = 3_600_000;
    let folder = tempfile::tempdir().expect("a folder");
    let mut history = History::open(folder.path(), Duration::from_secs(86_400)).expect("a folder");
    let now = now_ms();
    let at = |history: &mut History, time_ms| {
        assert_eq!(history.add_at(&[report("/a")], time_ms), Ok(None));
        names(folder.path())
    };
    at(&mut history, now);
    let year = now + 365 * 24 * HOUR_MS;
    let (today, ahead) = (format!("{}.parquet", hour(now)), hour(year));
    assert_eq!(at(&mut history, year), [today.clone(), format!("{ahead}.jsonl")]);
    // Back: hours that have not come stay, and the hour is there a second time.
    let back = at(&mut history, now);
    assert_eq!(back, [format!("{}.jsonl", hour(now)), today.clone(), format!("{ahead}.parquet")]);
    let second = format!("{}.2.parquet", hour(now));
    let next = at(&mut history, now + HOUR_MS);
    assert_eq!(next, [second, today, format!("{}.jsonl", hour(now + HOUR_MS)), format!("{ahead}.parquet")]);
    // In time the old ones go.
    let later = (2..30).map(|n| at(&mut history, now + n * HOUR_MS)).last().expect("some");
    assert_eq!(later.len(), 26, "{later:?}");
}
