//! The library as C sees it: the header, the layouts, the examples, linked with the shared and with
//! the static library. Without a C compiler the tests say that they skip.

use std::collections::BTreeSet;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use refault::*;
use refault_testing::{Need, absent};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// How a program is linked.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Link {
    Shared,
    Static,
}

/// Where this test and the libraries are.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Compiles a program of one file; where it is. `None`: there is no compiler.
fn compile(source: &str, link: Link, include: Option<&Path>) -> Option<PathBuf> {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let name = format!("{}-{link:?}", Path::new(source).file_stem().unwrap().to_str().unwrap());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(&cc);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&program);
    command.arg(Path::new(HERE).join(source)).arg(format!("-I{HERE}/include"));
    if let Some(include) = include {
        command.arg(format!("-I{}", include.display()));
    }
    match link {
        Link::Shared => {
            command.arg(format!("-L{}", built().display())).arg("-lrefault");
            command.arg(format!("-Wl,-rpath,{}", built().display()))
        }
        Link::Static => command.arg(built().join("librefault.a")).args(["-lpthread", "-ldl", "-lm"]),
    };
    let output = match command.output() {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            absent(Need::Cc, format_args!("there is no C compiler ({cc})"));
            return None;
        }
        Err(e) => panic!("{cc}: {e}"),
    };
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Runs it; `None`: the machine does not allow it.
fn run(program: &Path, arguments: &[&Path]) -> Option<Output> {
    // Cargo names its own directory first, where an older library may be.
    let output = Command::new(program).args(arguments).env("LD_LIBRARY_PATH", built()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) {
        absent(Need::Uffd, stderr.trim());
        return None;
    }
    assert!(output.status.success(), "{}: {}\n{stdout}{stderr}", program.display(), output.status);
    eprint!("{stdout}{stderr}");
    Some(output)
}

#[test]
fn the_region_example_runs_with_both_libraries() {
    for link in [Link::Shared, Link::Static] {
        let Some(program) = compile("examples/region.c", link, None) else { return };
        run(&program, &[]);
    }
}

#[test]
fn the_file_example_runs_with_both_libraries() {
    for link in [Link::Shared, Link::Static] {
        let Some(program) = compile("examples/mapped_file.c", link, None) else { return };
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("numbers-{link:?}"));
        let numbers = |plus: u64| (0..2_500_000u64).flat_map(|i| (i * 3 + plus).to_ne_bytes()).collect::<Vec<u8>>();
        std::fs::write(&path, numbers(0)).unwrap();
        let output = run(&program, &[&path]);
        let content = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let Some(output) = output else { return };
        let sum: u64 = (0..2_500_000u64).map(|i| i * 3).sum();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), sum.to_string());
        assert!(content == numbers(1), "every number is one more");
    }
}

/// A line for each struct and each field, as the C program prints them.
macro_rules! layout {
    ($($name:ident { $($field:ident),* $(,)? })*) => {{
        let (mut fields, mut expected) = (String::new(), String::new());
        $(
            fields += concat!("SIZE(", stringify!($name), ");\n");
            expected += &format!("{} {}\n", stringify!($name), size_of::<$name>());
            $(
                fields += concat!("FIELD(", stringify!($name), ", ", stringify!($field), ");\n");
                let size = size_of_field(|s: &$name| &s.$field);
                expected += &format!("{}.{} {} {size}\n", stringify!($name), stringify!($field), offset_of!($name, $field));
            )*
        )*
        (fields, expected)
    }};
}

fn size_of_field<S, F>(_: impl Fn(&S) -> &F) -> usize {
    size_of::<F>()
}

#[test]
fn structs_are_laid_out_as_in_the_header() {
    let (fields, expected) = layout! {
        refault_region_config {
            struct_bytes, bytes, memory_max, memory_high, swap_max, zswap_max, stall_limit_ms, policy, swap_directory, thp, pool,
            fault_threads, standby_percent, fault_mode, sample_cpu_percent, pool_adapts, poll, awake_cpus,
        }
        refault_limits { memory_max, memory_high, swap_max, zswap_max }
        refault_region_stats {
            memory_bytes, peak_bytes, own_bytes, store_bytes, swap_bytes, faults, first_touches, swapped_in, swapped_out, rescued,
            throttled, throttled_ns, read_errors, write_errors, lost_pages, events_high, events_max, samples_taken,
            samples_seen, sample_cost_ns, folios_made, folios_out, folios_in, folios_split,
            pool_limit_bytes,
        }
        refault_file_config { struct_bytes, memory_max, stall_limit_ms, policy, writable, fault_threads, awake_cpus, dirty_background_ratio }
        refault_file_stats {
            memory_bytes, peak_bytes, own_bytes, dirty_bytes, writeback_bytes, faults, reads, writes, read_errors, write_errors,
            lost_pages,
        }
    };
    // Every field of the header is in the list above.
    let header = std::fs::read_to_string(Path::new(HERE).join("include/refault.h")).unwrap();
    let declared = header.lines().filter(|l| l.starts_with("    ") && l.contains(';') && !l.contains('(')).count();
    assert_eq!(declared, fields.matches("FIELD").count());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi-fields");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("fields.h"), fields).unwrap();
    let Some(program) = compile("tests/abi.c", Link::Shared, Some(&directory)) else { return };
    let output = run(&program, &[]).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    run(&program, &["nonsense".as_ref()]);
}

/// The names of functions that follow some words.
fn functions(text: &str, before: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_string();
    text.match_indices(before).map(|(at, _)| name(&text[at + before.len() - "refault_".len()..])).collect()
}

#[test]
fn the_header_has_what_the_library_has() {
    let read = |path: &str| std::fs::read_to_string(Path::new(HERE).join(path)).unwrap();
    let sources = ["src/lib.rs", "src/error.rs", "src/region.rs", "src/file.rs"].map(read).concat();
    let defined = functions(&sources, "extern \"C\" fn refault_");
    let header = read("include/refault.h");
    let called = header.lines().filter(|l| l.contains('(') && !l.trim_start().starts_with(['*', '/']));
    let declared: BTreeSet<String> = called
        .filter_map(|l| functions(l, "refault_").into_iter().find(|name| l.contains(&format!("{name}("))))
        .collect();
    assert_eq!(defined, declared);
    assert_eq!(defined.len(), 24);
}
