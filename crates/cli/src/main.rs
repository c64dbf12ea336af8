//! The command `refault`.

/// Replays go to large tables at random: on huge pages they are up to twice as fast.
#[global_allocator]
static HEAP: refault_syscalls::HugeHeap = refault_syscalls::HugeHeap;

fn main() -> std::process::ExitCode {
    refault_cli::command::main()
}
