//! The rows: programs, their limits, and how they are recorded.

/// How a program is recorded.
#[derive(Clone, Copy, PartialEq)]
pub enum How {
    /// The server runs and is warm in its limit; then the recorder comes.
    Attached,
    /// From its start, out of a cold cache.
    FromStart,
    /// The same, while a second group does the like with the same files.
    Shared,
}

impl How {
    /// For the table.
    pub fn text(self) -> &'static str {
        match self {
            How::Attached => "attached",
            How::FromStart => "from the start",
            How::Shared => "from the start, two groups",
        }
    }
}

/// A row: a program with its data.
pub struct Row {
    pub name: &'static str,
    /// For the table.
    pub what: &'static str,
    /// The script of it in `rows`, without `.sh`.
    pub script: &'static str,
    pub how: How,
    /// Programs that must be there, with their packages.
    pub needs: &'static [(&'static str, &'static str)],
    /// The size of the file system with its data.
    pub disk_mib: u64,
    /// The data are other ones afterwards.
    pub changes: bool,
    /// There is a load from outside, and a way to end the program.
    pub has_load: bool,
    /// Limits at which it is recorded to be sized.
    pub recorded_mib: &'static [u64],
    /// Limits at which it runs besides, and which are promised from each of the others.
    pub further_mib: &'static [u64],
    /// Variables of the script: counts of operations and the like.
    pub variables: &'static [(&'static str, &'static str)],
}

const POSTGRES: &[(&str, &str)] = &[("pgbench", "postgresql-contrib"), ("setpriv", "util-linux")];
const ROCKSDB: &[(&str, &str)] = &[("db_bench", "rocksdb-tools")];
const NGINX: &[(&str, &str)] = &[("nginx", "nginx"), ("python3", "python3")];
const RIPGREP: &[(&str, &str)] = &[("rg", "ripgrep"), ("python3", "python3")];
const REDIS: &[(&str, &str)] = &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const MAPPED: &[(&str, &str)] = &[("cc", "gcc")];

/// Reads of files by a program that ends by itself.
const BATCH: Row = Row {
    name: "",
    what: "",
    script: "",
    how: How::FromStart,
    needs: &[],
    disk_mib: 1024,
    changes: false,
    has_load: false,
    recorded_mib: &[128],
    further_mib: &[96, 256],
    variables: &[],
};

pub const ALL: &[Row] = &[
    Row {
        name: "postgres-zipf",
        what: "PostgreSQL, point reads, zipf",
        script: "postgres",
        how: How::Attached,
        needs: POSTGRES,
        disk_mib: 1536,
        has_load: true,
        recorded_mib: &[96, 160, 256],
        further_mib: &[96, 160, 256, 384],
        variables: &[("LOAD", "reads"), ("WARM", "240000"), ("COUNT", "120000")],
        ..BATCH
    },
    Row {
        name: "postgres-zipf-from-start",
        what: "PostgreSQL, point reads, zipf",
        script: "postgres",
        needs: POSTGRES,
        disk_mib: 1536,
        has_load: true,
        recorded_mib: &[160],
        further_mib: &[96, 256],
        variables: &[("LOAD", "reads"), ("COUNT", "240000")],
        ..BATCH
    },
    Row {
        name: "postgres-tpcb",
        what: "PostgreSQL, TPC-B",
        script: "postgres",
        how: How::Attached,
        needs: POSTGRES,
        disk_mib: 1536,
        changes: true,
        has_load: true,
        recorded_mib: &[160],
        further_mib: &[96, 256],
        variables: &[("LOAD", "writes"), ("WARM", "20000"), ("COUNT", "10000")],
    },
    Row {
        name: "rocksdb",
        what: "RocksDB, random reads, skewed",
        script: "rocksdb",
        needs: ROCKSDB,
        disk_mib: 2048,
        variables: &[("COUNT", "300000")],
        ..BATCH
    },
    Row {
        name: "rocksdb-two-groups",
        what: "RocksDB, random reads; another group reads the same files",
        script: "rocksdb",
        how: How::Shared,
        needs: ROCKSDB,
        disk_mib: 2048,
        variables: &[("COUNT", "100000")],
        ..BATCH
    },
    Row {
        name: "nginx",
        what: "nginx, 30,000 files by sendfile",
        script: "nginx",
        needs: NGINX,
        has_load: true,
        variables: &[("COUNT", "60000")],
        ..BATCH
    },
    Row { name: "ripgrep", what: "ripgrep, 12,000 files", script: "ripgrep", needs: RIPGREP, ..BATCH },
    Row {
        name: "mapped-uniform",
        what: "a mapped file, read at random",
        script: "mapped",
        needs: MAPPED,
        variables: &[("COUNT", "30000"), ("POWER", "1")],
        ..BATCH
    },
    Row {
        name: "mapped-skewed",
        what: "a mapped file, read at random, skewed",
        script: "mapped",
        needs: MAPPED,
        variables: &[("COUNT", "60000"), ("POWER", "3")],
        ..BATCH
    },
    Row {
        name: "redis",
        what: "redis, append-only file and dump",
        script: "redis",
        needs: REDIS,
        changes: true,
        has_load: true,
        recorded_mib: &[112],
        further_mib: &[96, 192],
        ..BATCH
    },
];
