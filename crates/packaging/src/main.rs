//! `refault-packaging FOLDER`: manual pages and completions of shells, made of the command lines.
//! Packages have them; no part of this program is shipped.

use clap_complete::{Shell, generate};
use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("error: no folder given");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {}: {e}", folder.display());
            ExitCode::from(2)
        }
    }
}

/// Writes both into folders below `folder`.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    let refault = whole();
    let man = folder.join("man");
    fs::create_dir_all(&man)?;
    pages(&refault, &man)?;
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, name) in [(Shell::Bash, "refault.bash"), (Shell::Zsh, "_refault"), (Shell::Fish, "refault.fish")] {
        let mut file = BufWriter::new(File::create(completions.join(name))?);
        generate(shell, &mut refault.clone(), "refault", &mut file);
    }
    Ok(())
}

/// The command line of `refault` with the flags of `run` and `top`, which `refault-run` parses.
fn whole() -> clap::Command {
    let mut refault = refault_cli::command::command();
    for (name, mut own) in ["run", "top"].into_iter().zip(refault_run::commands()) {
        own = own.name(name).disable_version_flag(true);
        refault = refault.mut_subcommand(name, |_| own);
    }
    refault
}

/// Writes the page of a command and of each subcommand.
fn pages(command: &clap::Command, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut built = command.clone().disable_help_subcommand(true);
    built.build();
    Ok(clap_mangen::generate_to(built, folder)?)
}
