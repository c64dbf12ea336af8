//! Programs that are recorded: how their files are made, once, and their scripts of `sh`.

use crate::in_place::Sequence;

/// A program.
pub struct Program {
    /// The name of its row, and of its folder.
    pub name: &'static str,
    /// For the table.
    pub what: &'static str,
    /// Programs that must be there.
    pub needs: &'static [&'static str],
    /// Limits of the group, in MiB.
    pub limits_mib: &'static [u64],
    /// Makes what it works on, in a folder of its own; `$TREE` is a folder of sources.
    pub prepare: &'static str,
    /// Done before each time, unrecorded.
    pub before: &'static str,
    /// The program.
    pub run: &'static str,
    /// How it is timed from the cache, if its cost is measured.
    pub timed: Option<&'static str>,
    /// All that it touches of its file `data`, if that is known.
    pub sequence: Option<Sequence>,
}

/// A table with an index, look-ups of what lies together by it, some keys more often than others,
/// and a scan of half of it every 6,000 look-ups.
const SQLITE: &str = r#"
sqlite3 shop.db "
pragma journal_mode = off; pragma synchronous = off;
create table t(id integer primary key, k integer, pad text);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 700000)
insert into t select i, i * 48271 % 2147483647 % 700000, hex(zeroblob(100)) from c;
create index tk on t(k);"
(
    echo 'pragma cache_size = 500;'
    for round in 1 2 3; do
        sqlite3 :memory: "
with recursive n(i, x) as (select 1, 7919 * $round union all select i + 1, x * 48271 % 2147483647 from n where i < 6000),
     keys(k) as (select cast(700000 * (x / 2147483647.0) * (x / 2147483647.0) * (x / 2147483647.0) as integer) from n)
select format('select sum(length(pad)) from t where k between %d and %d;', k, k + 8) from keys;"
        echo 'select sum(length(pad)) from t where id between 1 and 350000;'
    done
) >queries.sql
"#;

/// Rows of a table of 100 MiB and more, each changed where it lies.
const MEMORY: &str = r#"
sqlite3 :memory: "
create table t(k integer primary key, v integer, pad text);
with recursive c(i) as (select 0 union all select i + 1 from c where i < 400000)
insert into t select i, 0, hex(zeroblob(100)) from c;
with recursive n(i, x) as (select 1, 7919 union all select i + 1, x * 48271 % 2147483647 from n where i < 500000)
insert into t select x % 400000, 0, '' from n where true on conflict(k) do update set v = v + 1;"
"#;

const TREE: &str = r#"
cp -rL "$TREE" tree
cd tree
git init -q .
git -c user.email=a@b -c user.name=a add -Af .
git -c user.email=a@b -c user.name=a -c gc.auto=0 commit -qm tree
"#;

const FIO: &str = "dd if=/dev/zero of=data bs=1M count=512 status=none";

const CPLUSPLUS: &str = r#"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    cat >f$i.cc <<C
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>
#include <algorithm>
int f$i(int n) {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < n; i++) m[std::to_string(i % $i)].push_back(i);
    std::ostringstream all;
    for (auto &[k, v] : m) { std::sort(v.begin(), v.end()); all << k << v.size(); }
    return all.str().size();
}
C
done
cat >Makefile <<'M'
all: lib.a
lib.a: $(patsubst %.cc,%.o,$(wildcard *.cc))
	ar rcs $@ $^
%.o: %.cc
	g++ -std=c++17 -O1 -g -c $< -o $@
M
"#;

const REDIS: &str = r#"
serve() {
    redis-server --port 0 --unixsocket "$PWD/s" --appendonly yes --appendfsync everysec --save "" \
        --auto-aof-rewrite-percentage 0 >/dev/null &
    until redis-cli -s s ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
}
serve
redis-benchmark -s s -t set -n 400000 -r 30000 -d 400 -c 20 -P 8 -q >/dev/null
kill $!; wait $!
serve
redis-benchmark -s s -t set,get -n 100000 -r 30000 -d 400 -c 20 -P 8 -q >/dev/null
kill $!; wait $!
"#;

const MAPPED: &str = r#"
cc -O2 -pthread -o mapped "$MAPPED"
dd if=/dev/urandom of=data bs=1M count=240 status=none
"#;

/// A program that touches pages of a mapping of 240 MiB.
macro_rules! mapped {
    ($name:literal, $pattern:literal, $touches:literal, $threads:literal, $advice:literal) => {
        Program {
            name: $name,
            what: concat!($touches, " touches of a mapping, ", $pattern, ", advice ", $advice, ", threads: ", $threads),
            needs: &["cc"],
            limits_mib: &[64, 128],
            prepare: MAPPED,
            before: "",
            run: concat!("exec ./mapped data ", $pattern, " ", $touches, " ", $threads, " ", $advice),
            timed: None,
            sequence: Some(Sequence { pattern: $pattern, pages: 240 << 8, touches: $touches, threads: $threads }),
        }
    };
}

pub const ALL: &[Program] = &[
    Program {
        name: "sqlite3",
        what: "queries by an index, and scans",
        needs: &["sqlite3"],
        limits_mib: &[64, 128],
        prepare: SQLITE,
        before: "",
        run: "sqlite3 shop.db '.read queries.sql' >/dev/null",
        timed: Some("sqlite3 shop.db '.read queries.sql' >/dev/null"),
        sequence: None,
    },
    Program {
        name: "memory",
        what: "random changes of a table in memory",
        needs: &["sqlite3"],
        limits_mib: &[],
        prepare: "",
        before: "",
        run: "",
        timed: Some(MEMORY),
        sequence: None,
    },
    Program {
        name: "git-grep",
        what: "`git grep`, three times",
        needs: &["git"],
        limits_mib: &[64, 128],
        prepare: TREE,
        before: "",
        run: "cd tree; for i in 1 2 3; do git grep -c foobar >/dev/null; done",
        timed: Some("cd tree; for i in 1 2 3; do git grep -c foobar >/dev/null; done"),
        sequence: None,
    },
    Program {
        name: "tar",
        what: "`tar` of a tree, twice",
        needs: &["tar", "git"],
        limits_mib: &[64, 256],
        prepare: TREE,
        before: "",
        run: "for i in 1 2; do tar cf - tree | cat >/dev/null; done",
        timed: None,
        sequence: None,
    },
    Program {
        name: "fio-zipf",
        what: "random reads of 4 KiB, zipf 0.9",
        needs: &["fio"],
        limits_mib: &[128, 256],
        prepare: FIO,
        before: "",
        run: "fio --name=x --filename=data --size=512M --invalidate=0 --ioengine=psync --thread --randseed=5 \
              --output=/dev/null --rw=randread --bs=4k --random_distribution=zipf:0.9 --io_size=1G",
        timed: Some(
            "fio --name=x --filename=data --size=512M --invalidate=0 --ioengine=psync --thread --randseed=5 \
             --output=/dev/null --rw=randread --bs=4k --io_size=4G",
        ),
        sequence: None,
    },
    Program {
        name: "fio-sequential",
        what: "reads of 128 KiB, three times through 512 MiB",
        needs: &["fio"],
        limits_mib: &[128],
        prepare: FIO,
        before: "",
        run: "fio --name=x --filename=data --size=512M --invalidate=0 --ioengine=psync --thread \
              --output=/dev/null --rw=read --bs=128k --io_size=1536M",
        timed: Some(
            "fio --name=x --filename=data --size=512M --invalidate=0 --ioengine=psync --thread \
             --output=/dev/null --rw=read --bs=128k --io_size=16G",
        ),
        sequence: None,
    },
    Program {
        name: "fio-mixed",
        what: "reads and writes of 4 KiB, 70 to 30, zipf 0.9",
        needs: &["fio"],
        limits_mib: &[128, 256],
        prepare: FIO,
        before: "",
        run: "fio --name=x --filename=data --size=512M --invalidate=0 --ioengine=psync --thread --randseed=5 \
              --output=/dev/null --rw=randrw --rwmixread=70 --bs=4k --random_distribution=zipf:0.9 --io_size=1G",
        timed: None,
        sequence: None,
    },
    Program {
        name: "redis",
        what: "append-only file: writes, a start, writes",
        needs: &["redis-server", "redis-cli", "redis-benchmark"],
        limits_mib: &[128, 256],
        prepare: "",
        before: "rm -rf s appendonlydir",
        run: REDIS,
        timed: None,
        sequence: None,
    },
    Program {
        name: "g++",
        what: "`make -j2` of twelve files",
        needs: &["g++", "make"],
        limits_mib: &[256, 512],
        prepare: CPLUSPLUS,
        before: "rm -f *.o lib.a",
        run: "make -s -j2",
        timed: Some("make -s -j2"),
        sequence: None,
    },
    mapped!("mapped-uniform", "uniform", 16000, 1, "normal"),
    mapped!("mapped-skewed", "skewed", 16000, 1, "normal"),
    mapped!("mapped-threads", "uniform", 16000, 4, "normal"),
    mapped!("mapped-strided", "strided", 16000, 1, "normal"),
    mapped!("mapped-sequential", "sequential", 130000, 1, "normal"),
    mapped!("mapped-advised-random", "skewed", 12000, 1, "random"),
    mapped!("mapped-advised-sequential", "uniform", 8000, 1, "sequential"),
];
