//! A few inflaters with warm buffers, shared by everybody who walks compressed records.

use parking_lot::Mutex;

use kolumn_kafka_wire::records::Inflater;

#[derive(Debug, Default)]
pub(crate) struct Inflaters {
    idle: Mutex<Vec<Inflater>>,
}

impl Inflaters {
    /// Lends one out for the duration of the call.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut Inflater) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut inflater = idle.unwrap_or_default();
        let outcome = use_it(&mut inflater);
        inflater.shrink_to(IDLE_LEN_MAX);
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(inflater);
        }
        outcome
    }
}

const IDLE_MAX: usize = 4;
/// Memory that an idle one keeps.
const IDLE_LEN_MAX: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use kolumn_kafka_wire::records::{Batch, BatchBuilder, Compression};

    use super::*;

    #[test]
    fn an_inflater_gives_back_what_an_unusually_long_batch_took() {
        let len = 3 * IDLE_LEN_MAX;
        let mut builder = BatchBuilder::new().with_compression(Compression::Zstd);
        builder.append(None, Some(&vec![0; len]), [], 0).expect("fits");
        let bytes = builder.build().expect("fits");
        let (batch, _) = Batch::parse(&bytes).expect("a batch");
        let inflaters = Inflaters::default();
        inflaters.with(|inflater| {
            assert!(batch.decompress(inflater, usize::MAX).expect("inflates").len() > len);
            assert!(inflater.capacity() > len);
        });
        inflaters.with(|inflater| assert!(inflater.capacity() <= IDLE_LEN_MAX));
    }
}
