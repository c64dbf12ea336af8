//! Swap devices as a driver sees them: added, taken away, exhausted.

use refault_mm::{
    Ack, Config, Effect, Engine, MappingKind, MemcgId, Outcome, PageId, Policy, SwapDeviceConfig, Swapoff,
    SwapoffError, Touch,
};
use refault_mm::{LruConfig, MemcgConfig, SwapConfig};
use refault_testing::AtOnce;

/// Answers at once; out of memory is noted.
fn disks() -> AtOnce {
    AtOnce::answering(|_, e| matches!(e, Effect::Oom { .. }).then_some(Ack::Done))
}

struct Machine {
    engine: Engine,
    world: AtOnce,
    group: MemcgId,
    first: PageId,
}

impl Machine {
    fn new(devices: Vec<SwapDeviceConfig>, memory: u64, swap_max: u64) -> Machine {
        let cfg = Config {
            swap: SwapConfig { devices, pages: 0, ..SwapConfig::default() },
            lru: LruConfig { batch_folios: 0, ..Config::new(Policy::Lru).lru },
            memcg: MemcgConfig { charge_batch: 1, charge_kernel: false, ..MemcgConfig::default() },
            ..Config::new(Policy::Lru)
        };
        let mut engine = Engine::new(cfg).expect("a possible configuration");
        let group = engine.add_memcg(MemcgId::ROOT, "/g", memory, swap_max).expect("a group");
        let (_, first) = engine.add_mapping(MappingKind::Anon, group, 0..400).expect("a region");
        Machine { engine, world: disks(), group, first }
    }

    fn touch(&mut self, page: u32, write: bool) -> Outcome {
        let page = PageId(self.first.0 + page);
        if write {
            self.world.set_dirty(page);
        }
        let outcome = self.engine.access(&mut self.world, page, if write { Touch::MapWrite } else { Touch::MapRead });
        self.engine.validate().expect("no invariant is broken");
        outcome
    }

    fn write(&mut self, pages: std::ops::Range<u32>) {
        pages.for_each(|p| _ = self.touch(p, true));
    }

    fn swapoff(&mut self, device: u8) -> Swapoff {
        let result = self.engine.swapoff(&mut self.world, device);
        self.engine.validate().expect("no invariant is broken");
        result
    }

    fn used(&self) -> Vec<(u8, u64)> {
        self.engine.swap_devices().iter().map(|d| (d.number, d.used_pages)).collect()
    }
}

fn device(pages: u64, priority: i16) -> SwapDeviceConfig {
    SwapDeviceConfig { priority: Some(priority), ..SwapDeviceConfig::new(pages) }
}

#[test]
fn swapoff_moves_what_does_not_fit_to_the_other_device() {
    let mut m = Machine::new(vec![device(101, 5), device(1001, 1)], 60, u64::MAX);
    m.write(0..200);
    let full = m.used();
    assert!(full[0] == (0, 100) && full[1].1 >= 40, "the higher priority is filled first: {full:?}");
    assert_eq!(m.swapoff(0), Swapoff::Done);
    assert_eq!(m.used().len(), 1);
    assert!(m.used()[0].1 >= 140, "{:?}", m.used());
    assert_eq!(m.swapoff(0), Swapoff::Failed(SwapoffError::NoDevice));
    // A new device gets the number, and its slots are those of nobody.
    assert_eq!(m.engine.swapon(device(51, 9)), Ok(0));
    m.write(0..200);
    assert_eq!(m.used()[0], (0, 50));
    assert_eq!(m.world.noted, []);
}

#[test]
fn swapoff_without_room_leaves_the_device_as_it_was() {
    let mut m = Machine::new(vec![device(501, 5)], 60, u64::MAX);
    m.write(0..200);
    let before = m.used()[0].1;
    assert_eq!(m.swapoff(0), Swapoff::Failed(SwapoffError::NoMemory(m.group)));
    assert_eq!(m.world.noted, [], "nobody dies for it");
    assert!((140..=before).contains(&m.used()[0].1), "all but what fits is there still: {:?} of {before}", m.used());
    // It goes on: everything can be read, and more is written there.
    (0..200).for_each(|p| assert!(matches!(m.touch(p, true), Outcome::Hit | Outcome::Major | Outcome::Minor)));
    m.write(200..250);
    assert!(m.used()[0].1 >= 190, "{:?}", m.used());
}

/// Writes under way were a reason to try again for ever, whatever came of them.
#[test]
fn regression_swapoff_without_room_gives_up_while_writes_are_under_way() {
    let mut m = Machine::new(vec![device(501, 5)], 60, u64::MAX);
    m.write(0..200);
    let used = m.used()[0].1;
    m.engine.swapon(device(11, 9)).expect("room for a device");
    m.world.answer = |_, e| matches!(e, Effect::SwapOut { .. }).then_some(Ack::Pending);
    let results: Vec<Swapoff> = (0..100).map(|_| m.swapoff(0)).take_while(|&r| r == Swapoff::Waiting).collect();
    assert!((1..40).contains(&results.len()), "{} times", results.len());
    assert!(m.used().iter().any(|&(number, left)| number == 0 && left + 20 > used), "{:?} of {used}", m.used());
}

#[test]
fn swapoff_that_cannot_read_leaves_the_device_as_it_was() {
    let mut m = Machine::new(vec![device(501, 5)], 200, u64::MAX);
    m.write(0..210);
    let before = m.used()[0];
    m.engine.swapon(device(101, 1)).expect("room for a device");
    m.world.answer = |_, e| matches!(e, Effect::SwapIn { .. }).then_some(Ack::Failed);
    assert!(matches!(m.swapoff(0), Swapoff::Failed(SwapoffError::Read(_))));
    assert_eq!(m.used()[0], before);
    m.world.answer = |_, _| None;
    assert_eq!(m.swapoff(0), Swapoff::Done);
}

/// Pages in memory with a clean copy on the device were dropped again while others were read, and
/// the device was never empty.
#[test]
fn regression_swapoff_gives_up_clean_copies_first() {
    let mut m = Machine::new(vec![device(501, 5), device(501, 1)], 60, u64::MAX);
    m.write(0..120);
    (0..40).for_each(|p| _ = m.touch(p, false));
    assert_eq!(m.swapoff(0), Swapoff::Done);
}

#[test]
fn without_a_slot_pages_stay_and_the_group_runs_out_of_memory() {
    let mut m = Machine::new(vec![device(31, 5)], 60, u64::MAX);
    m.write(0..90);
    assert_eq!(m.used(), [(0, 30)], "swap is full");
    assert_eq!(m.engine.memcg_events(m.group).oom, 0);
    assert_eq!(m.touch(90, true), Outcome::Oom(m.group));
    let events = m.engine.memcg_events(m.group);
    assert!(events.swap_fail > 0 && events.swap_max == 0 && !m.world.noted.is_empty(), "{events:?}");
}

#[test]
fn a_limit_on_swap_is_said_to_be_the_reason() {
    let mut m = Machine::new(vec![device(1001, 5)], 60, 20);
    m.write(0..80);
    assert_eq!(m.touch(80, true), Outcome::Oom(m.group));
    let events = m.engine.memcg_events(m.group);
    assert_eq!(m.used(), [(0, 20)]);
    assert!(events.swap_max > 0 && events.swap_fail >= events.swap_max, "{events:?}");
}

#[test]
fn there_are_no_more_than_sixteen_devices() {
    let mut m = Machine::new(vec![device(31, 5)], 60, u64::MAX);
    (1..16).for_each(|n| assert_eq!(m.engine.swapon(device(31, 5)), Ok(n)));
    let error = m.engine.swapon(device(31, 5)).expect_err("there are 16");
    assert!(error.contains("16 swap devices already"), "{error}");
    // Equals are filled by turns.
    m.write(0..76);
    assert!(m.used().iter().all(|&(_, used)| used >= 1), "{:?}", m.used());
}

#[test]
fn impossible_devices_are_refused() {
    let of = |d: SwapDeviceConfig| {
        Engine::new(Config {
            swap: SwapConfig { devices: vec![d], ..SwapConfig::default() },
            ..Config::new(Policy::Lru)
        })
        .err()
    };
    assert_eq!(of(device(2, 0)), None);
    let bad = |pages| SwapDeviceConfig { bad_pages: vec![pages], ..SwapDeviceConfig::new(100) };
    for (device, says) in [
        (device(1, 0), "2 to 2^28 pages"),
        (device(1 << 40, 0), "2 to 2^28 pages"),
        (device(100, -1), "0 to 32767"),
        (bad(0), "bad page 0"),
        (bad(100), "bad page 100"),
    ] {
        let error = of(device).expect("an error");
        assert!(error.contains(says), "{error}");
    }
    let policy = refault_mm::SwapPolicy { cluster_pages: 100, ..Default::default() };
    let error =
        Engine::new(Config { swap: SwapConfig { policy, ..SwapConfig::default() }, ..Config::new(Policy::Lru) })
            .expect_err("an error");
    assert!(error.contains("256 or 512"), "{error}");
}
