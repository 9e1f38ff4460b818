//! What Kafka's own performance tools print.

use std::io;

use crate::blaster::Outcome;
use crate::histogram::Percentiles;
use crate::wire::invalid;

/// The summary of `ProducerPerformance`, that of the steady state if there is one:
///
/// ```text
/// 300000 records sent, 42438.8 records/sec (41.44 MB/sec), 754.78 ms avg latency, 1349.00 ms max latency, 734 ms 50th, …
/// 250000 steady state records sent, …
/// ```
pub(super) fn producer(said: &str, record_bytes: u64) -> io::Result<Outcome> {
    let mut summaries = said.lines().filter_map(summary);
    let whole = summaries.next().ok_or_else(|| invalid("the producer tool printed no summary"))?;
    let measured = summaries.next().unwrap_or(whole);
    let total = whole.records;
    Ok(outcome("java produce", measured.records, total, measured.per_second, record_bytes, measured.latency))
}

#[derive(Clone, Copy)]
struct Summary {
    records: u64,
    per_second: f64,
    latency: Percentiles,
}

/// Lines of progress have no percentiles and give `None`.
fn summary(line: &str) -> Option<Summary> {
    let ms = |word: &str| {
        let field = line.split(", ").find(|field| field.contains(word))?;
        field.split_whitespace().next()?.parse::<f64>().ok()
    };
    let per_second = line.split(", ").find(|field| field.contains("records/sec"))?;
    let records = line.split_whitespace().next()?.parse().ok()?;
    let latency = Percentiles {
        count: records,
        p50: ms(" 50th")? * 1e3,
        p99: ms(" 99th")? * 1e3,
        p999: ms(" 99.9th")? * 1e3,
        max: ms(" max latency")? * 1e3,
    };
    Some(Summary { records, per_second: per_second.split_whitespace().next()?.parse().ok()?, latency })
}

/// The line below the header of `ConsumerPerformance`; the rate is that of fetching, without the joining of the group.
pub(super) fn consumer(said: &str, record_bytes: u64) -> io::Result<Outcome> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with("start.time"));
    let header = lines.next().map(columns).unwrap_or_default();
    let values = lines.next().map(columns).unwrap_or_default();
    let value = |name: &str| {
        let (_, value) = header.iter().zip(&values).find(|(column, _)| **column == name)?;
        value.parse::<f64>().ok()
    };
    let records = header.iter().zip(&values).find(|(column, _)| **column == "data.consumed.in.nMsg");
    let records = records.and_then(|(_, value)| value.parse().ok());
    let (Some(records), Some(per_second)) = (records, value("fetch.nMsg.sec")) else {
        return Err(invalid("the consumer tool printed no summary"));
    };
    Ok(outcome("java consume", records, records, per_second, record_bytes, Percentiles::default()))
}

fn columns(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than an f64 has")]
fn outcome(
    mode: &str,
    records: u64,
    records_total: u64,
    records_per_s: f64,
    record_bytes: u64,
    latency_us: Percentiles,
) -> Outcome {
    Outcome {
        mode: mode.into(),
        seconds: records as f64 / records_per_s.max(1e-9),
        requests: 0,
        records,
        bytes: records * record_bytes,
        bytes_total: records_total * record_bytes,
        records_total,
        gb_per_s: records_per_s * record_bytes as f64 / 1e9,
        records_per_s,
        latency_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCER: &str = "\
Warmup first 50000 records. Steady state results will print after the complete test summary.
120001 records sent, 24000.2 records/sec (23.44 MB/sec), 700.1 ms avg latency, 900.0 ms max latency.
300000 records sent, 42438.817372 records/sec (41.44 MB/sec), 754.78 ms avg latency, 1349.00 ms max latency, 734 ms 50th, 992 ms 95th, 1031 ms 99th, 1042 ms 99.9th.
250000 steady state records sent, 54920.913884 records/sec (53.63 MB/sec), 803.73 ms avg latency, 1348.00 ms max latency, 811 ms 50th, 999 ms 95th, 1032 ms 99th, 1042 ms 99.9th.
";

    const CONSUMER: &str = "\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-12-01 00:14:12:504, 2026-12-01 00:14:15:624, 292.9688, 93.9002, 300000, 96153.8462, 910, 2210, 132.5650, 135746.6063
";

    #[test]
    fn the_steady_state_is_what_counts_of_the_producer_tool() {
        let seen = producer(PRODUCER, 1000).unwrap();
        assert_eq!((seen.records, seen.records_total, seen.bytes), (250_000, 300_000, 250_000_000));
        assert!((seen.records_per_s - 54_920.913_884).abs() < 1e-6);
        let percentiles =
            [seen.latency_us.p50, seen.latency_us.p99, seen.latency_us.p999, seen.latency_us.max];
        for (got, expect) in percentiles.into_iter().zip([811e3, 1032e3, 1042e3, 1348e3]) {
            assert!((got - expect).abs() < 1e-6, "{got} for {expect}");
        }
    }

    #[test]
    fn without_a_warm_up_the_whole_counts() {
        let whole: Vec<_> = PRODUCER.lines().take(3).collect();
        assert_eq!(producer(&whole.join("\n"), 1000).unwrap().records, 300_000);
    }

    #[test]
    fn the_consumer_tool_counts_from_after_it_has_joined() {
        let seen = consumer(CONSUMER, 1024).unwrap();
        assert_eq!(seen.records, 300_000);
        assert!((seen.records_per_s - 135_746.606_3).abs() < 1e-6);
    }

    #[test]
    fn output_without_a_summary_is_an_error() {
        assert!(producer("Exception in thread main\n", 1).is_err());
        assert!(producer(PRODUCER.lines().nth(1).unwrap(), 1).is_err());
        assert!(consumer(CONSUMER.lines().next().unwrap(), 1).is_err());
    }
}
