//! Programs that run to their end: what they print is the result.

use super::Launcher;
use std::fmt::Write;
use std::path::Path;

/// Two arrays are sorted, then joined on their values.
const NUMPY: &str = r#"
import sys, hashlib, numpy as np
n = int(sys.argv[1]) // 32
rng = np.random.default_rng(7)
a = rng.integers(0, 4 * n, n)
b = rng.integers(0, 4 * n, n)
a.sort()
order = np.argsort(b, kind="stable")
at = np.searchsorted(a, b[order])
hits = a[np.minimum(at, n - 1)] == b[order]
h = hashlib.sha256()
for x in (a, order, at, hits):
    h.update(x.tobytes())
print(int(hits.sum()), h.hexdigest())
"#;

/// A table of objects that are all over the heap, gone through twice and changed once.
const DICTS: &str = r#"
import sys, hashlib
n = int(sys.argv[1]) // 250
d = {i: (str(i) * 4, i) for i in range(n)}
h = hashlib.sha256()
for i in range(0, n, 3):
    d[i] = (d[i][0][::-1], i + 1)
for i in sorted(d, key=lambda i: d[i][0]):
    h.update(repr(d[i]).encode())
print(h.hexdigest())
"#;

fn python(launcher: &mut Launcher, dir: &Path, script: &str, bytes: u64) -> Result<String, String> {
    launcher.run(dir, "python3", &["-c", script, &bytes.to_string()])
}

/// numpy: sort and join.
pub fn numpy(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    python(launcher, dir, NUMPY, bytes)
}

/// Python: dictionaries and strings.
pub fn dicts(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    python(launcher, dir, DICTS, bytes)
}

/// `sort` of a file that it holds whole.
pub fn sort(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    let mut text = String::new();
    let mut x: u64 = 7;
    // A line of 60 bytes takes about 100 in sort's memory.
    for _ in 0..bytes / 100 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(text, "{x:020} a line of text that is sorted, and it is {}", x >> 60);
    }
    std::fs::write(dir.join("lines"), text).map_err(|e| e.to_string())?;
    let size = format!("{}b", bytes * 2);
    launcher.run(dir, "sh", &["-c", "sort -S \"$1\" --parallel=2 lines > sorted && cksum < sorted", "sh", &size])
}

/// Two compilers at once; a source file is as long as it takes.
pub fn compile(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    let mut source = String::from("#include <map>\n#include <string>\n#include <vector>\n");
    // Measured: a function takes the compiler (g++ 12, 466 functions: 1985 MiB) about 4.1 MiB on
    // top of 60.
    for i in 0..(bytes / 2).saturating_sub(60 << 20) / 4_300_000 {
        let _ = writeln!(
            source,
            "struct K{i} {{ int a; bool operator<(const K{i}& o) const {{ return a < o.a; }} }};\n\
             int f{i}(int n) {{ std::map<K{i}, std::vector<std::string>> m; for (int j = 0; j < n; j++) m[K{i}{{j}}].push_back(\"x\"); return (int)m.size(); }}"
        );
    }
    for name in ["a.cpp", "b.cpp"] {
        std::fs::write(dir.join(name), &source).map_err(|e| e.to_string())?;
    }
    let script = "g++ -O1 -c a.cpp & a=$!; g++ -O1 -c b.cpp && wait $a && cksum a.o b.o";
    launcher.run(dir, "sh", &["-c", script])
}
