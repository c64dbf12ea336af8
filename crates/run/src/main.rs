//! The program `refault-run`.

/// As that of the command.
#[global_allocator]
static HEAP: refault_syscalls::HugeHeap = refault_syscalls::HugeHeap;

fn main() -> std::process::ExitCode {
    refault_run::main()
}
