//! The flag `--sampler` of commands that take a sample of a live kernel.

use clap::ValueEnum;
use refault_record::SamplerChoice;

/// Values of `--sampler`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplerArg {
    /// Programs where these are possible, else filters
    Auto,
    /// BPF programs, or an error
    Bpf,
    /// Filters of perf events
    Filter,
}

impl From<SamplerArg> for SamplerChoice {
    fn from(arg: SamplerArg) -> SamplerChoice {
        match arg {
            SamplerArg::Auto => SamplerChoice::Auto,
            SamplerArg::Bpf => SamplerChoice::Bpf,
            SamplerArg::Filter => SamplerChoice::Filter,
        }
    }
}
