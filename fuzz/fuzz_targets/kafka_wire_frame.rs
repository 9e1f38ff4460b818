//! An arbitrary stream in arbitrary pieces: the same frames as in one piece, and requests in them never panic.
#![no_main]

use kolumn_kafka_wire::{FrameDecoder, Limits, RequestFrame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&step, stream)) = input.split_first() else { return };
    let limits = Limits::default().with_frame_len_max(1000);
    let whole = frames(limits, stream, stream.len().max(1));
    assert_eq!(frames(limits, stream, usize::from(step).max(1)), whole);
    for frame in whole.0 {
        let borrowed = RequestFrame::decode(&frame).map_err(|error| error.to_string());
        let shared = RequestFrame::decode_shared(&frame).map_err(|error| error.to_string());
        assert_eq!(format!("{borrowed:?}"), format!("{shared:?}"));
    }
});

/// The frames of a stream that arrives in pieces, and whether it ended in an error.
fn frames(limits: Limits, stream: &[u8], step: usize) -> (Vec<bytes::Bytes>, bool) {
    let mut decoder = FrameDecoder::new(limits);
    let mut frames = Vec::new();
    for piece in stream.chunks(step) {
        decoder.extend(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}
