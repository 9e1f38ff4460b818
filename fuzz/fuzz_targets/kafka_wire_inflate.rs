//! Arbitrary bytes as compressed data: never a panic, never more output than the limit.
#![no_main]

use kolumn_kafka_wire::records::{Compression, Inflater};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let mut inflater = Inflater::new();
    for codec in Compression::ALL {
        if codec == Compression::None {
            continue;
        }
        let first = inflater.inflate(codec, input, LIMIT).map(<[u8]>::to_vec);
        assert!(first.as_ref().map_or(0, Vec::len) <= LIMIT);
        assert!(inflater.capacity() <= LIMIT);
        assert_eq!(
            inflater.inflate(codec, input, LIMIT).map(<[u8]>::to_vec),
            first,
            "{codec} with a warm buffer"
        );
    }
});
