//! Tests of the table itself.

use std::collections::BTreeSet;

use super::*;
use crate::config::Policy;
use crate::config::thp::{ThpConfig, ThpSize};

#[test]
fn names_are_those_of_one_setting() {
    let mut seen = BTreeSet::new();
    assert!(settings().all(|s| seen.insert(s.name) && Setting::find(s.name).is_ok_and(|found| found.name == s.name)));
    assert!(settings().all(|s| !s.heading.is_empty() && !s.about.is_empty()));
    assert!(settings().flat_map(|s| s.former).all(|(old, _)| !seen.contains(old)));
}

/// Each value that a setting says to take is taken, and read back; nothing else is.
#[test]
fn values_are_read_back() {
    for setting in settings() {
        for value in setting.values.some() {
            let mut cfg = Config::new(Policy::Mglru);
            assert!(setting.set(&mut cfg, value), "{}={value}", setting.name);
            assert_eq!(setting.value(&cfg), value, "{}", setting.name);
            assert_eq!(setting.parse(&value.to_string()), Ok(value), "{}", setting.name);
        }
        let mut cfg = Config::new(Policy::Mglru);
        for wrong in [Value::Word("sideways"), Value::Number(u64::MAX)] {
            assert!(!setting.set(&mut cfg, wrong), "{}={wrong}", setting.name);
        }
        assert_eq!(cfg, Config::new(Policy::Mglru));
    }
}

fn part_is_read_back<C: Clone + Default>(settings: &[Setting<C>]) {
    let mut seen = BTreeSet::new();
    for setting in settings {
        assert!(seen.insert(setting.name) && !setting.about.is_empty() && !setting.heading.is_empty());
        assert!(setting.values.has(setting.value(&C::default())), "{}: the default", setting.name);
        for value in setting.values.some() {
            let mut part = C::default();
            assert!(setting.set(&mut part, value), "{}={value}", setting.name);
            assert_eq!(setting.value(&part), value, "{}", setting.name);
            assert_eq!(setting.parse(&value.to_string()), Ok(value), "{}", setting.name);
        }
    }
}

#[test]
fn values_of_parts_are_read_back() {
    part_is_read_back(THP);
    part_is_read_back(ZSWAP);
    part_is_read_back(TIERING);
    let sizes = ThpConfig::MIN_ORDER..=ThpConfig::MAX_ORDER;
    for order in sizes {
        let mut thp = ThpConfig::default();
        let setting = ThpConfig::size_setting(order).expect("a size");
        assert!(setting.set(&mut thp, Value::Word("always")));
        assert_eq!(thp.sizes[usize::from(order)], ThpSize::Always, "{}", setting.name);
    }
}

#[test]
fn defaults_are_values_in_every_kernel() {
    for (policy, kernel) in Policy::ALL.iter().flat_map(|&p| Kernel::ALL.map(|k| (p, k))) {
        let mut cfg = Config::new(policy);
        kernel.apply(&mut cfg);
        assert!(settings().all(|s| s.values.has(s.value(&cfg))), "{kernel} {policy}");
    }
}

#[test]
fn former_names_and_words_are_answered_with_those_of_today() {
    let error = |name: &str, text: &str| Chosen::default().choose_text(name, text).unwrap_err();
    assert_eq!(
        error("fault_around", "64K").split("; ").last(),
        Some("it is fault_around_pages, in pages: 16 for \"64K\", 1 for none")
    );
    assert_eq!(error("recency", "three-bit"), "\"three-bit\" is not a value of recency; it is \"3bit\"");
    assert_eq!(error("recency", "4bit"), "\"4bit\" is not a value of recency; it takes 3bit|literal");
}

#[test]
fn the_last_choice_counts() {
    let mut chosen = Chosen::default();
    for n in ["0", "15"] {
        chosen.choose_text("batch_folios", n).unwrap();
    }
    let mut cfg = Config::new(Policy::Lru);
    chosen.apply(&mut cfg);
    assert_eq!((cfg.lru.batch_folios, chosen.get("batch_folios")), (15, Some(Value::Number(15))));
}
