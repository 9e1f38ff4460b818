//! temporary
use crate::support::*;
use kolumn_topic_store::Settings;
#[test]
#[ignore = "temporary"]
fn perf() {
    let directory = tempfile::tempdir_in("/work").expect("a directory");
    let settings = Settings { size_limit: Some(8 << 30), index_len_max: 400 << 10, tail_len_max: 32 << 20, ..Settings::default() };
    let store = open_at(directory.path(), settings.clone());
    let (_, topic) = make_topic(&store, "t", 4, &[("retention.ms", "-1")]);
    let rss = || std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmRSS")).unwrap().to_owned();
    for (size, count) in [(1000_usize, 100_000_usize), (100_000, 2_000)] {
        let sent = large(3, size);
        let start = std::time::Instant::now();
        let mut pending = std::collections::VecDeque::new();
        let mut busy = 0;
        for n in 0..count {
            let p = kolumn_topic_store::PartitionIndex::new((n % 4) as i32);
            loop {
                match store.append(topic.id, p, sent.clone(), NOW) {
                    Ok(c) => { pending.push_back(c); break; }
                    Err(e) => { busy += 1; assert_eq!(e.kind(), kolumn_topic_store::AppendErrorKind::Busy, "{e}"); if let Some(c) = pending.pop_front() { c.wait().unwrap(); } }
                }
            }
            if n % 10_000 == 0 { store.maintain(NOW).unwrap(); }
        }
        for c in pending { c.wait().unwrap(); }
        let t = start.elapsed();
        println!("append {size} x {count}: {t:?} {:.0} MB/s busy {busy} {:?} {}", (size * count) as f64 / 1e6 / t.as_secs_f64(), store.stats(), rss());
    }
    let start = std::time::Instant::now();
    let mut total = 0_usize;
    for p in 0..4 {
        let p = kolumn_topic_store::PartitionIndex::new(p);
        let mut offset = 0;
        loop {
            let read = store.read(request(topic.id, p, offset, 1 << 20)).unwrap();
            if read.slices.is_empty() { break; }
            for b in bytes_of(&read) { total += b.len(); offset = kolumn_kafka_wire::records::Batch::parse(&b).unwrap().0.next_offset(); }
        }
    }
    let t = start.elapsed();
    println!("read {total}: {t:?} {:.0} MB/s {}", total as f64 / 1e6 / t.as_secs_f64(), rss());
    let start = std::time::Instant::now();
    store.close().unwrap();
    println!("close {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let store = open_at(directory.path(), settings);
    println!("open {:?} {:?} {}", start.elapsed(), store.stats(), rss());
}
