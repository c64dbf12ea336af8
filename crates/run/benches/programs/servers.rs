//! Servers under load: every value that was stored is asked for again and must be what was stored
//! last.

use super::Launcher;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const VALUE_BYTES: usize = 1000;

/// The value of a key: text that LZ4 shrinks to about half, and that is of this key and version
/// only.
fn value(key: u64, version: u32) -> String {
    let mut x = key * 1_000_003 + u64::from(version);
    let mut text = format!("{key}:{version}:");
    while text.len() < VALUE_BYTES {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{:08x}-refault-", x >> 32));
    }
    text.truncate(VALUE_BYTES);
    text
}

struct Connection {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Connection {
    fn open(socket: &Path) -> Option<Connection> {
        let write = UnixStream::connect(socket).ok()?;
        let read = BufReader::with_capacity(1 << 18, write.try_clone().ok()?);
        Some(Connection { write, read })
    }

    fn send(&mut self, text: &str) -> Result<(), String> {
        self.write.write_all(text.as_bytes()).map_err(|e| e.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.read.read_line(&mut line) {
            Ok(n) if n > 0 => Ok(line.trim_end().to_owned()),
            other => Err(format!("the server hung up: {other:?}")),
        }
    }

    /// `length` bytes and the end of the line.
    fn bytes(&mut self, length: usize) -> Result<String, String> {
        let mut bytes = vec![0; length + 2];
        self.read.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|e| e.to_string())
    }
}

fn expect(what: &str, got: &str, wanted: &str) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got:?} instead of {wanted:?}")) }
}

const BATCH: u64 = 64;

/// Stores `keys` of some version, a batch of requests at a time.
fn redis_set(c: &mut Connection, keys: &[u64], version: u32) -> Result<(), String> {
    for batch in keys.chunks(BATCH as usize) {
        let one = |k: &u64| format!("SET k{k} {}\r\n", value(*k, version));
        c.send(&batch.iter().map(one).collect::<String>())?;
        for _ in batch {
            expect("SET", &c.line()?, "+OK")?;
        }
    }
    Ok(())
}

fn redis_check(c: &mut Connection, keys: &[u64], version: u32) -> Result<(), String> {
    for batch in keys.chunks(BATCH as usize) {
        c.send(&batch.iter().map(|k| format!("GET k{k}\r\n")).collect::<String>())?;
        for k in batch {
            expect(&format!("GET k{k}"), &c.line()?, &format!("${VALUE_BYTES}"))?;
            expect(&format!("k{k}"), &c.bytes(VALUE_BYTES)?, &value(*k, version))?;
        }
    }
    Ok(())
}

const REDIS: [&str; 12] = [
    "--port",
    "0",
    "--unixsocket",
    "redis.sock",
    "--save",
    "",
    "--appendonly",
    "no",
    "--daemonize",
    "no",
    "--dbfilename",
    "dump.rdb",
];

fn redis_up(launcher: &Launcher, dir: &Path) -> Result<(super::launch::Server, Connection), String> {
    let _ = std::fs::remove_file(dir.join("redis.sock"));
    let mut server = launcher.server(dir, "redis-server", &REDIS)?;
    let mut c = server.wait_for(|| Connection::open(&dir.join("redis.sock")))?;
    server.wait_for(|| {
        c.send("PING\r\n").ok()?;
        (c.line().ok()? == "+PONG").then_some(())
    })?;
    Ok((server, c))
}

/// redis: fill, snapshot by fork while values are overwritten, read everything; then another server
/// reads the snapshot, which must have the values from before.
pub fn redis(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    let keys: Vec<u64> = (0..bytes / 1150).collect();
    let _ = std::fs::remove_file(dir.join("dump.rdb"));
    let (mut server, mut c) = redis_up(launcher, dir)?;
    redis_set(&mut c, &keys, 1)?;
    c.send("BGSAVE\r\n")?;
    expect("BGSAVE", &c.line()?, "+Background saving started")?;
    // Every fourth, all over memory, while the child writes.
    let changed: Vec<u64> = keys.iter().copied().filter(|k| k % 4 == 1).collect();
    let same: Vec<u64> = keys.iter().copied().filter(|k| k % 4 != 1).collect();
    redis_set(&mut c, &changed, 2)?;
    redis_check(&mut c, &same, 1)?;
    redis_check(&mut c, &changed, 2)?;
    server.wait_for(|| dir.join("dump.rdb").exists().then_some(()))?;
    c.send("SHUTDOWN NOSAVE\r\n")?;
    server.end(launcher)?;
    let plain = Launcher::plain(None);
    let (server, mut c) = redis_up(&plain, dir)?;
    redis_check(&mut c, &keys, 1).map_err(|e| format!("the snapshot: {e}"))?;
    c.send("SHUTDOWN NOSAVE\r\n")?;
    server.end(&mut Launcher::plain(None))?;
    Ok(format!("{} keys, {} of them changed during a snapshot", keys.len(), changed.len()))
}

/// memcached: two threads of the server, fill, overwrite, read everything.
pub fn memcached(launcher: &mut Launcher, dir: &Path, bytes: u64) -> Result<String, String> {
    let keys: Vec<u64> = (0..bytes / 1250).collect();
    let megabytes = ((bytes * 2) >> 20).to_string();
    let socket = dir.join("memcached.sock");
    let _ = std::fs::remove_file(&socket);
    let user = ["-u", "root", "-t", "2", "-s", "memcached.sock", "-m", &megabytes];
    let mut server = launcher.server(dir, "memcached", &user)?;
    let mut c = server.wait_for(|| Connection::open(&socket))?;
    memcached_set(&mut c, &keys, 1)?;
    let changed: Vec<u64> = keys.iter().copied().filter(|k| k % 4 == 1).collect();
    memcached_set(&mut c, &changed, 2)?;
    for k in &keys {
        c.send(&format!("get k{k}\r\n"))?;
        expect("get", &c.line()?, &format!("VALUE k{k} 0 {VALUE_BYTES}"))?;
        expect(&format!("k{k}"), &c.bytes(VALUE_BYTES)?, &value(*k, 1 + u32::from(k % 4 == 1)))?;
        expect("get", &c.line()?, "END")?;
    }
    server.terminate()?;
    server.end(launcher)?;
    Ok(format!("{} keys, {} of them overwritten", keys.len(), changed.len()))
}

fn memcached_set(c: &mut Connection, keys: &[u64], version: u32) -> Result<(), String> {
    for batch in keys.chunks(BATCH as usize) {
        let one = |k: &u64| format!("set k{k} 0 0 {VALUE_BYTES}\r\n{}\r\n", value(*k, version));
        c.send(&batch.iter().map(one).collect::<String>())?;
        for _ in batch {
            expect("set", &c.line()?, "STORED")?;
        }
    }
    Ok(())
}
