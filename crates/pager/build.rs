//! Builds what `refault run` loads into programs, and puts it into the library: a shared object
//! without the standard library, of the sources of `crates/preload`, which a link has here for
//! packages of this crate. So there is one file to install, and no way for the two to be of
//! different versions.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The linker, lld under some name, where that of the build has no `--defsym`: zig's.
const LINKER: &str = "REFAULT_PRELOAD_LINKER";

fn main() -> Result<(), Box<dyn Error>> {
    let source = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("preload");
    println!("cargo:rerun-if-changed={}", source.display());
    let object = PathBuf::from(env::var("OUT_DIR")?).join("preload.so");
    if env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64" || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        // `refault run` says that it does not know this machine.
        fs::write(&object, [])?;
        return Ok(());
    }
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc.args(["--crate-name", "refault_preload", "--crate-type", "cdylib", "--edition", "2024", "--cfg", "preload"]);
    rustc
        .args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols"])
        .arg("--target")
        .arg(env::var("TARGET")?);
    // Code of the core library names what unwinds panics; here nothing does, and nobody else may
    // find a symbol of that name.
    let unwinding = "--defsym=rust_eh_personality=0";
    // Copies are made by code of its own: that of the C library uses memory that may be out of
    // memory.
    let symbols = [unwinding, "--defsym=memcpy=refault_copy", "--defsym=memset=refault_fill"];
    println!("cargo:rerun-if-env-changed={LINKER}");
    match (env::var(LINKER), env::var("RUSTC_LINKER")) {
        // It is linked with no library: a linker does without the compiler that finds them.
        (Ok(linker), _) => {
            rustc.args(["-C", "linker-flavor=ld.lld", "-C"]).arg(format!("linker={linker}"));
            rustc.args(symbols.map(|symbol| format!("-Clink-arg={symbol}")));
        }
        (_, linker) => {
            rustc.args(linker.map(|linker| format!("-Clinker={linker}")).ok());
            rustc.args(symbols.map(|symbol| format!("-Clink-arg=-Wl,{symbol}")));
        }
    }
    // Paths of the machine that builds are in no package.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| flag.starts_with("--remap-path-prefix")));
    rustc.arg("-o").arg(&object).arg(source.join("lib.rs"));
    let status = rustc.status().map_err(|e| format!("{rustc:?}: {e}"))?;
    if !status.success() {
        return Err(format!("building the library of refault run failed: {rustc:?}").into());
    }
    Ok(())
}
