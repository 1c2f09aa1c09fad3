//! The honest work: what every peer reads of an object, and the lines that it prints.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use kube::ResourceExt;

const STAMP: &str = "bench/ts";

/// What is read of an object besides its metadata.
pub trait Sight: ResourceExt {
    const NAME: &'static str;
    fn phase(&self) -> &str {
        ""
    }
    /// The length of the conditions' types and statuses.
    fn conditions(&self) -> usize {
        0
    }
    fn timeout(&self) -> i64 {
        0
    }
    /// The length of the repositories' addresses.
    fn repositories(&self) -> usize {
        0
    }
}

pub struct Probe {
    began: i64,
    wanted: usize,
    first: Mutex<First>,
}

#[derive(Default)]
struct First {
    synced: bool,
    seen: HashSet<String>,
    sum: i64,
}

impl Probe {
    pub fn new() -> Self {
        let wanted = std::env::var("BENCH_WANT").expect("BENCH_WANT");
        Self { began: now(), wanted: wanted.parse().expect("a number"), first: Mutex::default() }
    }

    /// An object goes through a handler.
    pub fn note<K: Sight>(&self, object: &K) {
        let size = size(object);
        let now = now();
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let mut first = self.first.lock().unwrap();
        if !first.synced && first.seen.insert(format!("{}/{namespace}/{name}", K::NAME)) {
            first.sum += size;
            if first.seen.len() == self.wanted {
                first.synced = true;
                first.seen = HashSet::new();
                print(format!("SYNCED {now} {}\n", first.sum));
            }
        }
        drop(first);
        let stamp = object.annotations().get(STAMP).and_then(|text| text.parse::<i64>().ok());
        if let Some(sent) = stamp.filter(|sent| *sent > self.began) {
            print(format!("H {namespace}/{name} {sent} {now}\n"));
        }
    }
}

fn size<K: Sight>(object: &K) -> i64 {
    let metadata = object.meta();
    let labels: usize = object.labels().iter().map(|(key, value)| key.len() + value.len()).sum();
    let annotations: usize =
        object.annotations().iter().filter(|(key, _)| *key != STAMP).map(|(key, value)| key.len() + value.len()).sum();
    let owners: usize = object.owner_references().iter().map(|owner| owner.name.len()).sum();
    let names = metadata.name.as_ref().map_or(0, String::len) + metadata.namespace.as_ref().map_or(0, String::len);
    let rest = object.phase().len() + object.conditions() + object.repositories();
    (names + labels + annotations + owners + rest) as i64 + object.timeout()
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

fn print(line: String) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}
