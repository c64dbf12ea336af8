use std::collections::BTreeMap;

use proptest::prelude::*;
use refault_trace::generate::Rng;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn device(preset: Preset) -> Device {
    Device::new(DeviceModel::preset("disk", preset), 1)
}

fn read(id: u64, at_page: u64, pages: u32) -> Request {
    Request { id, write: false, at_page, pages }
}

/// Lets the device run until nothing is left, at the times it asks for.
fn drain(device: &mut Device) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(at) = device.next_event_ns() {
        device.advance(at, &mut done);
        // The check looks at all open requests: with thousands it is too slow for each step.
        if device.stats().depth < 500 {
            device.validate().unwrap();
        }
    }
    done
}

/// Keeps `depth` requests open until `until_ns`; returns how many ended a second.
fn closed_loop(device: &mut Device, depth: u64, until_ns: u64, mut next: impl FnMut(u64) -> Request) -> f64 {
    let mut done = Vec::new();
    let mut id = 0;
    for _ in 0..depth {
        device.submit(0, next(id));
        id += 1;
    }
    let mut ended = 0u64;
    while let Some(at) = device.next_event_ns().filter(|&at| at <= until_ns) {
        device.advance(at, &mut done);
        for _ in done.drain(..) {
            ended += 1;
            device.submit(at, next(id));
            id += 1;
        }
    }
    ended as f64 * SECOND as f64 / until_ns as f64
}

fn near(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{measured} is not near {expected}");
}

fn random_pages(span: u64) -> impl FnMut(u64) -> Request {
    let mut rng = Rng::new(7, &[1]);
    move |id| read(id, rng.below(span), 1)
}

#[test]
fn presets_are_possible_and_have_names() {
    for preset in Preset::ALL {
        DeviceModel::preset("d", preset).check().unwrap();
        assert_eq!(preset.to_string().parse(), Ok(preset));
    }
    let error = "floppy".parse::<Preset>().unwrap_err();
    assert!(error.contains("floppy") && error.contains("sata-ssd"), "{error}");
}

#[test]
fn impossible_devices_are_refused() {
    let refused = |change: fn(&mut DeviceModel), preset| {
        let mut spec = DeviceModel::preset("d", preset);
        change(&mut spec);
        spec.check().unwrap_err()
    };
    assert!(refused(|d| d.channels = 0, Preset::Nvme).contains("channels"));
    assert!(refused(|d| d.read.bytes_per_s = 0, Preset::Nvme).contains("bytes"));
    assert!(refused(|d| d.max_request_pages = 0, Preset::Nvme).contains("page"));
    assert!(refused(|d| d.compression_ratio = f64::NAN, Preset::Zram).contains("ratio"));
    assert!(refused(|d| d.channels = 2, Preset::Hdd).contains("arm"));
    assert!(refused(|d| d.seek.as_mut().unwrap().rpm = 0, Preset::Hdd).contains("turns"));
    assert!(refused(|d| d.seek.as_mut().unwrap().average_ns = 0, Preset::Hdd).contains("track"));
    assert!(refused(|d| d.faults.spike_per_million = 1_000_001, Preset::Nvme).contains("million"));
    assert!(refused(|d| d.faults.stuck_at_ns = Some(0), Preset::Zram).contains("stuck"));
    assert!(refused(|d| d.name.clear(), Preset::Nvme).contains("name"));
}

#[test]
fn a_lone_request_takes_latency_and_transfer() {
    let mut device = device(Preset::Nvme);
    device.submit(1000, read(1, 5, 1));
    let done = drain(&mut device);
    let expected = 1000 + 51_400 + 1_171;
    assert_eq!(done, [Completion { request: read(1, 5, 1), ok: true, issued_ns: 1000, done_ns: expected }]);
    assert_eq!(device.stats().busy_ns, expected - 1000);
}

#[test]
fn random_reads_come_as_the_data_sheets_say() {
    near(closed_loop(&mut device(Preset::Nvme), 32, SECOND / 10, random_pages(1 << 20)), 600_000.0, 0.03);
    near(closed_loop(&mut device(Preset::Nvme), 1, SECOND / 10, random_pages(1 << 20)), 19_000.0, 0.01);
    near(closed_loop(&mut device(Preset::SataSsd), 32, SECOND / 10, random_pages(1 << 20)), 98_000.0, 0.03);
    near(closed_loop(&mut device(Preset::SataSsd), 1, SECOND / 10, random_pages(1 << 20)), 10_000.0, 0.01);
}

#[test]
fn large_requests_come_at_the_bandwidth() {
    for (preset, bytes_per_s) in [(Preset::Nvme, 3.5e9), (Preset::SataSsd, 550e6), (Preset::Hdd, 156e6)] {
        let requests = closed_loop(&mut device(preset), 16, 2 * SECOND, |id| read(id, id * 320, 320));
        near(requests * 320.0 * 4096.0, bytes_per_s, 0.02);
    }
}

#[test]
fn random_reads_of_a_disk_seek() {
    let mut disk = device(Preset::Hdd);
    let seek = disk.spec().seek.unwrap();
    let each = seek.average_ns + seek.half_rotation_ns() + 50_000 + 26_257;
    let alone = closed_loop(&mut disk, 1, 200 * SECOND, random_pages(seek.span_pages));
    near(alone, SECOND as f64 / each as f64, 0.03);
    // The elevator shortens the way of many.
    let many = closed_loop(&mut device(Preset::Hdd), 64, 200 * SECOND, random_pages(seek.span_pages));
    assert!(many > 1.3 * alone, "{many} with 64 waiting, {alone} alone");
}

#[test]
fn requests_that_continue_do_not_seek() {
    let mut disk = device(Preset::Hdd);
    for id in 0..10 {
        disk.submit(0, read(id, 1000 + id * 8, 8));
    }
    let done = drain(&mut disk);
    let each = 50_000 + disk.spec().read.transfer_ns(8 * PAGE_BYTES);
    assert!(done.windows(2).all(|pair| pair[1].done_ns - pair[0].done_ns == each));
}

#[test]
fn the_arm_goes_up_and_then_starts_again_from_the_lowest() {
    let mut disk = device(Preset::Hdd);
    for (id, at_page) in [500, 100, 900, 700, 300].into_iter().enumerate() {
        disk.submit(0, read(id as u64, at_page, 1));
    }
    let order: Vec<_> = drain(&mut disk).iter().map(|done| done.request.at_page).collect();
    assert_eq!(order, [500, 700, 900, 100, 300]);
}

#[test]
fn a_far_request_is_not_left_behind() {
    const FAR: u64 = u64::MAX - 1;
    let mut disk = device(Preset::Hdd);
    let mut next = 0;
    let mut near_the_arm = |id| {
        next += 2;
        read(id, next, 1)
    };
    disk.submit(0, read(u64::MAX, 0, 1));
    disk.submit(0, near_the_arm(0));
    // Page 0 waits below the arm; a stream goes upwards without end and would never turn back.
    disk.submit(0, read(FAR, 0, 1));
    let mut done = Vec::new();
    let mut id = 1;
    let waited = loop {
        let at = disk.next_event_ns().unwrap();
        assert!(at < 2 * SECOND, "it is left behind");
        disk.advance(at, &mut done);
        if let Some(found) = done.iter().find(|done| done.request.id == FAR) {
            break found.done_ns;
        }
        for _ in done.drain(..) {
            disk.submit(at, near_the_arm(id));
            disk.submit(at, near_the_arm(id + 1));
            id += 2;
        }
    };
    assert!((500 * MS..700 * MS).contains(&waited), "{waited}");
}

#[test]
fn writes_wait_for_two_batches_of_reads() {
    let mut disk = device(Preset::Hdd);
    disk.submit(0, read(0, 0, 1));
    disk.submit(0, Request { id: 1000, write: true, at_page: 1, pages: 1 });
    for id in 1..100 {
        disk.submit(0, read(id, id * 10, 1));
    }
    let place = drain(&mut disk).iter().position(|done| done.request.write).unwrap();
    // The rest of the first batch, and two more.
    assert_eq!(place, 16 + 2 * 16);
}

#[test]
fn large_requests_are_served_in_parts_and_end_once() {
    let mut device = device(Preset::Nvme);
    device.submit(0, read(1, 0, 1000));
    assert_eq!(device.stats().in_flight, 4);
    let done = drain(&mut device);
    assert_eq!(done.len(), 1);
    assert_eq!(device.stats().read_bytes, 1000 * PAGE_BYTES);
    // The latencies of the parts overlap, their transfers do not.
    near(done[0].done_ns as f64, 51_400.0 + 1000.0 * 1170.3, 0.001);
}

#[test]
fn a_stuck_device_goes_on_where_it_was() {
    let mut spec = DeviceModel::preset("d", Preset::Nvme);
    spec.faults = Faults { stuck_at_ns: Some(10_000), stuck_for_ns: SECOND, ..Faults::default() };
    let mut device = Device::new(spec.clone(), 1);
    device.submit(0, read(1, 0, 1));
    device.submit(500_000, read(2, 0, 1));
    let ends: Vec<_> = drain(&mut device).iter().map(|done| done.done_ns).collect();
    assert_eq!(ends, [SECOND + 52_571, SECOND + 10_000 + 52_571]);

    spec.faults.stuck_for_ns = u64::MAX;
    let mut device = Device::new(spec, 1);
    device.submit(0, read(1, 0, 1));
    assert_eq!(device.next_event_ns(), None);
    let mut done = Vec::new();
    device.advance(u64::MAX, &mut done);
    assert!(done.is_empty());
    device.validate().unwrap();
}

#[test]
fn faults_come_at_their_rates_and_by_the_seed() {
    let run = |seed| {
        let mut spec = DeviceModel::preset("d", Preset::Nvme);
        spec.faults = Faults {
            read_error_per_million: 100_000,
            write_error_per_million: 20_000,
            spike_per_million: 50_000,
            spike_ns: 10 * MS,
            ..Faults::default()
        };
        let mut device = Device::new(spec, seed);
        for id in 0..20_000 {
            device.submit(id * 1000, Request { id, write: id % 2 == 1, at_page: id, pages: 1 });
        }
        (drain(&mut device), *device.stats())
    };
    let (done, stats) = run(3);
    near(stats.read_errors as f64, 1000.0, 0.15);
    near(stats.write_errors as f64, 200.0, 0.3);
    near(stats.spikes as f64, 1000.0, 0.15);
    assert_eq!(stats.read_bytes, (stats.reads - stats.read_errors) * PAGE_BYTES);
    assert_eq!(done.iter().filter(|done| !done.ok).count() as u64, stats.read_errors + stats.write_errors);
    assert_eq!(run(3), (done.clone(), stats));
    assert_ne!(run(4).0, done);
}

#[test]
fn one_bad_part_fails_the_request() {
    let mut spec = DeviceModel::preset("d", Preset::Nvme);
    spec.max_request_pages = 1;
    spec.faults.read_error_per_million = 20_000;
    let mut device = Device::new(spec, 5);
    for id in 0..1000 {
        device.submit(0, read(id, id * 50, 50));
    }
    let failed = drain(&mut device).iter().filter(|done| !done.ok).count();
    // 1 - 0.98^50
    near(failed as f64, 636.0, 0.1);
    assert_eq!(device.stats().read_errors, failed as u64);
}

#[test]
fn zram_costs_the_cpu() {
    let mut zram = device(Preset::Zram);
    assert_eq!(zram.serve_synchronously(true, 1), SyncCompletion { ok: true, cpu_ns: 5_300 });
    assert_eq!(zram.serve_synchronously(false, 2), SyncCompletion { ok: true, cpu_ns: 4_200 });
    let stats = zram.stats();
    assert_eq!((stats.reads, stats.writes, stats.read_bytes, stats.busy_ns), (1, 1, 2 * PAGE_BYTES, 9_500));
    zram.validate().unwrap();
    assert_eq!(zram.spec().memory_bytes(22), 10 * PAGE_BYTES);
    assert_eq!(device(Preset::Nvme).spec().memory_bytes(22), 0);
}

#[test]
fn time_does_not_go_back() {
    let mut device = device(Preset::Nvme);
    device.submit(1_000_000, read(1, 0, 1));
    device.submit(0, read(2, 0, 1));
    assert!(drain(&mut device).iter().all(|done| done.issued_ns == 1_000_000));
}

fn specs() -> impl Strategy<Value = DeviceModel> {
    let presets = prop::sample::select(Preset::ALL.to_vec());
    let faults = (0u32..200_000, 0u32..200_000, prop::option::of(0u64..50 * MS), 0u64..100 * MS);
    (presets, 1u32..40, 1u32..64, faults).prop_map(|(preset, channels, max_request_pages, faults)| {
        let mut spec = DeviceModel::preset("d", preset);
        spec.synchronous = None;
        spec.max_request_pages = max_request_pages;
        if spec.seek.is_none() {
            spec.channels = channels;
        }
        let (errors, spikes, stuck_at_ns, stuck_for_ns) = faults;
        spec.faults = Faults {
            read_error_per_million: errors,
            write_error_per_million: errors / 2,
            spike_per_million: spikes,
            spike_ns: MS,
            stuck_at_ns,
            stuck_for_ns,
        };
        spec
    })
}

/// Gap to the request before, write, place, pages.
fn submissions() -> impl Strategy<Value = Vec<(u64, bool, u64, u32)>> {
    prop::collection::vec((0u64..2 * MS, any::<bool>(), 0u64..100_000, 0u32..200), 0..200)
}

/// Submits all; says how each ended. An attentive caller comes whenever the device asks for it,
/// another only to submit.
fn run(spec: &DeviceModel, work: &[(u64, bool, u64, u32)], attentive: bool) -> (Vec<Completion>, DeviceStats) {
    let mut device = Device::new(spec.clone(), 9);
    let (mut now, mut done) = (0, Vec::new());
    for (id, &(gap, write, at_page, pages)) in work.iter().enumerate() {
        now += gap;
        while attentive && let Some(at) = device.next_event_ns().filter(|&at| at <= now) {
            device.advance(at, &mut done);
        }
        device.submit(now, Request { id: id as u64, write, at_page, pages });
        device.validate().unwrap();
    }
    done.extend(drain(&mut device));
    (done, *device.stats())
}

/// The bytes of both directions, as time on the link.
fn link_ns(spec: &DeviceModel, done: &[Completion]) -> u64 {
    let ns = |done: &Completion| {
        let rate = if done.request.write { spec.write } else { spec.read };
        rate.transfer_ns(u64::from(done.request.pages) * PAGE_BYTES)
    };
    done.iter().map(ns).sum()
}

proptest! {
    #[test]
    fn every_request_ends_once_and_no_sooner_than_possible(spec in specs(), work in submissions()) {
        prop_assert_eq!(spec.check(), Ok(()));
        let (done, stats) = run(&spec, &work, true);
        let ends: BTreeMap<u64, &Completion> = done.iter().map(|done| (done.request.id, done)).collect();
        prop_assert_eq!(ends.len(), work.len());
        prop_assert_eq!(done.len(), work.len());
        prop_assert!(done.windows(2).all(|pair| pair[0].done_ns <= pair[1].done_ns));
        let mut issued = 0;
        for (id, &(gap, write, at_page, pages)) in work.iter().enumerate() {
            issued += gap;
            let end = ends[&(id as u64)];
            let rate = if write { spec.write } else { spec.read };
            prop_assert_eq!(end.request, Request { id: id as u64, write, at_page, pages });
            prop_assert_eq!(end.issued_ns, issued);
            let soonest = issued + rate.latency_ns + rate.transfer_ns(u64::from(pages) * PAGE_BYTES);
            prop_assert!(end.done_ns >= soonest);
        }
        // Never above the bandwidth: the link is used once at a time.
        let first = work.first().map_or(0, |work| work.0);
        let last = done.last().map_or(0, |done| done.done_ns);
        prop_assert!(link_ns(&spec, &done) <= last - first);
        prop_assert!(stats.busy_ns <= last - first);
        let bytes: u64 = done.iter().filter(|done| done.ok).map(|done| u64::from(done.request.pages) * PAGE_BYTES).sum();
        prop_assert_eq!(stats.read_bytes + stats.write_bytes, bytes);
        prop_assert_eq!((stats.depth, stats.in_flight, stats.submitted), (0, 0, work.len() as u64));
    }

    #[test]
    fn how_often_the_caller_looks_changes_nothing(spec in specs(), work in submissions()) {
        prop_assert_eq!(run(&spec, &work, true), run(&spec, &work, false));
    }
}
