//! The command `refault`, as a wheel brings it.

/// As that of the command.
#[global_allocator]
static HEAP: refault_syscalls::HugeHeap = refault_syscalls::HugeHeap;

fn main() -> std::process::ExitCode {
    refault_cli::command::main()
}
