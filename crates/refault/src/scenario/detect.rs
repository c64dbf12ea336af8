//! Files that are scenarios.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file whose name ends in `.toml`, or that begins as one: with a key or a section.
pub fn is_scenario(path: &Path) -> bool {
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) {
        return true;
    }
    // Input that can be read only once is left alone.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    read.is_ok() && begins_as_toml(&head)
}

/// No trace format has such a first line.
fn begins_as_toml(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = line.into_iter().find(|line| !line.is_empty() && line[0] != b'#') else { return false };
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return false;
    }
    let word = |text: &[u8]| {
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.\" ".contains(byte);
        text.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'"') && text.iter().all(part)
    };
    let section = line.strip_prefix(b"[").map(|rest| rest.strip_prefix(b"[").unwrap_or(rest));
    let inside = section.and_then(|rest| rest.split(|byte| *byte == b']').next());
    let key = line.iter().position(|byte| *byte == b'=').map(|at| line[..at].trim_ascii());
    inside.or(key).is_some_and(word)
}

#[cfg(test)]
mod tests {
    use super::begins_as_toml;

    #[test]
    fn first_lines() {
        for toml in ["name = \"a\"", "\n# what\n\n[machine]\n", "[[task]] # one", "device.disk = {}", "a=1"] {
            assert!(begins_as_toml(toml.as_bytes()), "{toml}");
        }
        let traces = [
            "",
            "# nothing\n",
            "12\n13\n",
            "1 4 0 0\n",
            " L 1000,8\n",
            "==7== x\n",
            "l 0x1000 1\n",
            "1,hm,1,Read,3,4,5\n",
        ];
        for trace in traces {
            assert!(!begins_as_toml(trace.as_bytes()), "{trace}");
        }
        assert!(!begins_as_toml(&[0x50, 0x41, 0x52, 0x31, b'=', 0]));
    }
}
