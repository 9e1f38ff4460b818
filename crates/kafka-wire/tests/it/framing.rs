//! Frames cut out of a stream, however it is split, with memory bounded by what arrived.

use kolumn_kafka_wire::{DecodeErrorKind, FrameDecoder, Limits};

use crate::allocations::measure_allocations;

#[test]
fn frames_are_the_same_however_the_stream_is_split() {
    let frames: [&[u8]; 4] = [b"", b"a", b"hello", &[7; 300]];
    let mut stream = Vec::new();
    for frame in frames {
        stream.extend(u32::try_from(frame.len()).unwrap().to_be_bytes());
        stream.extend(frame);
    }
    for step in [1, 2, 3, 5, 8, 100, stream.len()] {
        let mut decoder = FrameDecoder::new(Limits::default());
        let mut seen = Vec::new();
        for chunk in stream.chunks(step) {
            decoder.extend(chunk);
            while let Some(frame) = decoder.next_frame().unwrap() {
                seen.push(frame);
            }
        }
        assert_eq!(seen, frames, "in steps of {step}");
        assert_eq!(decoder.buffered(), 0);
    }
}

#[test]
fn a_negative_length_ends_the_stream() {
    for length in [[0xff, 0xff, 0xff, 0xff], [0x80, 0, 0, 0]] {
        let mut decoder = FrameDecoder::new(Limits::default());
        decoder.extend(&length);
        assert_eq!(decoder.next_frame().unwrap_err().kind(), DecodeErrorKind::Malformed);
        decoder.extend(&[0, 0, 0, 0]);
        assert_eq!(decoder.next_frame().unwrap_err().kind(), DecodeErrorKind::Malformed);
        assert!(decoder.peek_len().is_err());
    }
}

#[test]
fn a_length_over_the_limit_is_refused_as_soon_as_it_is_known() {
    let limits = Limits::default().with_frame_len_max(10);
    let mut decoder = FrameDecoder::new(limits);
    decoder.extend(&[0, 0, 0, 11]);
    assert_eq!(
        decoder.next_frame().unwrap_err().to_string(),
        "frame at byte 0: length 11 is over the limit of 10"
    );
    let mut decoder = FrameDecoder::new(limits);
    decoder.extend(&[0, 0, 0, 10]);
    assert_eq!(decoder.next_frame().unwrap(), None);
    assert_eq!(decoder.missing(), 10);
}

#[test]
fn limits_can_be_raised_after_authentication() {
    let mut decoder = FrameDecoder::new(Limits::default().with_frame_len_max(1));
    decoder.set_limits(Limits::default());
    decoder.extend(&[0, 0, 0, 2, 1, 2]);
    assert_eq!(decoder.next_frame().unwrap().unwrap()[..], [1, 2]);
}

#[test]
fn memory_follows_the_bytes_that_arrived_not_the_length_that_was_claimed() {
    let ((), seen) = measure_allocations(|| {
        let mut decoder = FrameDecoder::new(Limits::default());
        decoder.extend(&(90_u32 << 20).to_be_bytes());
        for _ in 0..100 {
            decoder.buffer_mut().extend_from_slice(&[0]);
            assert_eq!(decoder.next_frame().unwrap(), None);
        }
    });
    assert!(seen.total < 300_000, "{seen:?}");
}
