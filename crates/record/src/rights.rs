//! Capabilities that a sample of a whole machine takes, and those that this process lacks.

/// Capabilities by number, and what each is for. `CAP_SYS_ADMIN` stands for the first two.
const RIGHTS: [(u32, &str, &str); 5] = [
    (38, "CAP_PERFMON", "events of all programs"),
    (39, "CAP_BPF", "programs that take the sample"),
    (2, "CAP_DAC_READ_SEARCH", "tracefs, lengths of files, groups by number"),
    (19, "CAP_SYS_PTRACE", "descriptors of other programs"),
    (14, "CAP_IPC_LOCK", "memory of the rings"),
];

/// Number of `CAP_SYS_ADMIN`.
const ADMIN: u32 = 21;

/// Rights that `refault watch` uses and this process does not have, each with what it is for.
pub fn lacking_rights() -> Vec<(&'static str, &'static str)> {
    lacking_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn lacking_in(status: &str) -> Vec<(&'static str, &'static str)> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(held) = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else { return Vec::new() };
    let has = |number: u32| held >> number & 1 == 1 || number >= 38 && held >> ADMIN & 1 == 1;
    RIGHTS.iter().filter(|(number, ..)| !has(*number)).map(|&(_, name, what)| (name, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_lack_are_named() {
        let names = |hex: &str| lacking_in(&format!("Name:\tx\nCapEff:\t{hex}\n")).len();
        assert_eq!((names("000001ffffffffff"), names("0000000000000000")), (0, 5));
        assert_eq!(names("0000000000200000"), 3, "SYS_ADMIN stands for two");
        assert_eq!(lacking_in("CapEff:\t000000c000084000\n"), [(RIGHTS[2].1, RIGHTS[2].2)]);
        assert_eq!(lacking_in(""), []);
    }
}
