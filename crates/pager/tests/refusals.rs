//! Programs whose pager is refused something: by name what was found by failing every call.
//!
//! This test starts itself as the program. Without userfaultfd the tests say that they skip.

use std::path::Path;

use refault_pager::calls::{AgentFault, Call, CallFault, CallPlan};
use refault_pager::store::Codec;
use refault_pager::tree::{RunEnd, TreeConfig, run};
use refault_pager::{Error, PoolConfig, RegionConfig};
use refault_testing::{Program, role, test_name};

use crate::common::made;

const PAGE: usize = 4096;
const PAGES: usize = 4096;

/// Not a test of its own: the program, which has twice the memory that it gets. Its role is the
/// file that it makes when it begins.
#[test]
fn the_program() {
    let Some(file) = role() else { return };
    std::fs::write(file, "begun").expect("it can be written");
    let mut memory = vec![0u64; PAGES * PAGE / 8];
    for round in 1..4 {
        let wrong = (0..PAGES).filter(|p| memory[p * PAGE / 8] != (round - 1) * (*p as u64 + 1)).count();
        assert_eq!(wrong, 0, "round {round}");
        (0..PAGES).for_each(|p| memory[p * PAGE / 8] = round * (p as u64 + 1));
        std::hint::black_box(&mut memory);
    }
}

fn run_self(file: &Path, plan: CallPlan) -> Result<RunEnd, Error> {
    let words = Program::new(test_name!(the_program), file.to_str().expect("plain text")).words();
    let memory = RegionConfig {
        pool: Some(PoolConfig { codec: Codec::Lz4, max_bytes: 2 << 20 }),
        swap_max: 64 << 20,
        ..RegionConfig::new(64 << 20, PAGES / 2 * PAGE)
    };
    let _plan = plan.enter();
    run(TreeConfig { memory, record: None }, words[0].as_ref(), &words)
}

fn file(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("refault-{name}-{}", std::process::id()));
    _ = std::fs::remove_file(&path);
    path
}

/// Discarding scratch pages that are still watched, the agent waited for the manager, which waited
/// for the agent.
#[test]
fn an_agent_whose_scratch_pages_stay_watched_tries_again() {
    let (path, unregister) = (file("scratch"), 1);
    for errno in [libc::ENOMEM, libc::EINVAL] {
        let fault = AgentFault { call: libc::SYS_ioctl as u16, request: unregister, n: 0, errno: errno as u8 };
        let Some(outcome) = made(run_self(&path, CallPlan::new(|_, _| None).with_agents(fault))) else { return };
        assert!(outcome.status.success(), "{}", outcome.status);
        assert!(path.exists());
    }
    _ = std::fs::remove_file(&path);
}

/// It ran on for a while without its memory being served, and was ended then.
#[test]
fn a_program_that_cannot_be_admitted_does_not_begin() {
    let path = file("admitted");
    if made(run_self(&path, CallPlan::new(|_, _| None))).is_none() {
        return;
    }
    _ = std::fs::remove_file(&path);
    let refused = |call, n| (call == Call::Register && n < 1000).then_some(CallFault::Fails(libc::ENOMEM));
    let result = run_self(&path, CallPlan::new(refused));
    assert!(result.is_err(), "{result:?}");
    assert!(!path.exists(), "the program had begun");
}
