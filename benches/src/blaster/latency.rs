//! Acknowledgement latency at a fixed rate, from the intended time of sending.

use std::io::{self, Write};
use std::time::Duration;

use super::produce::{Receiver, in_two};
use super::{Latency, Outcome, seconds};
use crate::client::{self, Connection};
use crate::{batch, clock};

/// Requests under way at most: far above what a broker that keeps up ever sees. When it is reached, the
/// wait counts, because the intended times go on.
const IN_FLIGHT_MAX: usize = 10_000;

pub(super) fn run(arguments: &Latency) -> io::Result<Outcome> {
    let duration = seconds("--seconds", arguments.seconds)?;
    let warm_up = seconds("--warm-up", arguments.warm_up)?;
    let topic = &arguments.target.topic;
    let mut connection = Connection::open(arguments.target.broker)?;
    connection.create_topic(topic, 1, &[])?;
    let value_len = usize::try_from(arguments.record_bytes).unwrap_or(usize::MAX);
    let batch = batch::build(value_len, 0, clock::unix_millis());
    let request = client::produce_request(topic, 0, -1, &batch.bytes);
    let (stream, responses) = connection.split()?;
    let batch_len = u64::try_from(batch.bytes.len()).unwrap_or_default();
    let receiver = Receiver { responses, batch_len, records: 1 };
    let period = Duration::from_secs(1) / arguments.rate;
    clock::sharpen_sleep();
    let start = clock::now();
    let seen = in_two(stream, receiver, IN_FLIGHT_MAX, start, warm_up, |stream, flight| {
        let mut intended = start;
        while intended < start + duration {
            clock::sleep_until(intended);
            flight.begin(|| intended)?;
            stream.write_all(&request)?;
            intended += period;
        }
        Ok(())
    })?;
    let measured = seen.last.saturating_duration_since(start + warm_up);
    Ok(Outcome::new("latency", measured, seen.counts, seen.latency.percentiles()))
}
