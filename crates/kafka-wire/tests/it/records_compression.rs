//! What other clients' codecs write, and what an attacker would.
#![cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]

use std::io::Write;

use kolumn_kafka_wire::records::{Compression, InflateErrorKind, Inflater};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use proptest::prelude::*;

use crate::allocations::measure_allocations;

fn text(len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0_u32.. {
        if text.len() >= len {
            break;
        }
        write!(text, "line {} of {}; ", line.wrapping_mul(2_654_435_761) % 9_973, line / 7).expect("memory");
    }
    text.truncate(len);
    text
}

#[track_caller]
fn check(codec: Compression, data: &[u8], expect: &[u8]) {
    let mut inflater = Inflater::new();
    let result = inflater.inflate(codec, data, expect.len()).map_err(|error| error.to_string());
    assert!(result == Ok(expect), "{codec} of {} bytes: {:?}", expect.len(), result.map(<[u8]>::len));
}

#[track_caller]
fn check_refused(codec: Compression, data: &[u8], limit: usize, expect: InflateErrorKind) {
    let mut inflater = Inflater::new();
    let (result, seen) = measure_allocations(|| inflater.inflate(codec, data, limit).map(<[u8]>::len));
    assert_eq!(result.map_err(|error| error.kind()), Err(expect));
    assert!(seen.largest <= 512 << 10, "{seen:?}");
}

fn framed_snappy(blocks: &[&[u8]]) -> Vec<u8> {
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in blocks {
        let block = raw_snappy(block);
        framed.extend(i32::try_from(block.len()).expect("small").to_be_bytes());
        framed.extend(block);
    }
    framed
}

fn raw_snappy(data: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(data).expect("compresses")
}

#[test]
fn snappy_is_read_framed_with_several_blocks_raw_and_raw_below_16_bytes() {
    let text = text(100_000);
    check(Compression::Snappy, &framed_snappy(&[&text]), &text);
    check(
        Compression::Snappy,
        &framed_snappy(&[&text[..10], &[], &text[10..70_000], &text[70_000..]]),
        &text,
    );
    check(Compression::Snappy, &framed_snappy(&[]), &[]);
    check(Compression::Snappy, &raw_snappy(&text), &text);
    let short = raw_snappy(b"0123456");
    assert!(short.len() < 16);
    check(Compression::Snappy, &short, b"0123456");
    check(Compression::Snappy, &raw_snappy(&[0x82; 3]), &[0x82; 3]);
}

#[test]
fn snappy_blocks_with_wrong_lengths_are_refused() {
    let refused = InflateErrorKind::Corrupt(Compression::Snappy);
    let good = framed_snappy(&[b"some text"]);
    for length in [-1, i32::MIN, i32::MAX, 0, 5, 1_000] {
        let mut bad = good.clone();
        bad[16..20].copy_from_slice(&i32::to_be_bytes(length));
        check_refused(Compression::Snappy, &bad, LIMIT, refused);
    }
    for cut in 9..good.len() {
        if cut != 16 {
            check_refused(Compression::Snappy, &good[..cut], LIMIT, refused);
        }
    }
    // A raw block of a few bytes that declares 4 GB, alone and framed.
    let bomb = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x41];
    check_refused(Compression::Snappy, &bomb, usize::MAX, refused);
    let framed = [&b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x07"[..], &bomb].concat();
    check_refused(Compression::Snappy, &framed, usize::MAX, refused);
}

fn lz4(info: FrameInfo, data: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn lz4_frames_of_every_shape_are_read() {
    for len in [0, 1, 12, 1_000, 65_536, 65_537, 700_000] {
        let text = text(len);
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
                for checksums in [false, true] {
                    let mut info = FrameInfo::new().block_mode(mode).block_size(size);
                    info = info.block_checksums(checksums).content_checksum(checksums);
                    if checksums {
                        info = info.content_size(Some(len as u64));
                    }
                    check(Compression::Lz4, &lz4(info, &text), &text);
                }
            }
        }
    }
}

#[test]
fn lz4_blocks_that_do_not_compress_are_stored() {
    let noise: Vec<u8> = (0_u32..200_000).map(|i| i.wrapping_mul(0x9e37_79b1).to_be_bytes()[0]).collect();
    let noise: Vec<u8> =
        noise.iter().zip(1_u32..).map(|(byte, i)| byte ^ i.wrapping_mul(i).to_be_bytes()[2]).collect();
    check(Compression::Lz4, &lz4(FrameInfo::new().block_mode(BlockMode::Linked), &noise), &noise);
}

#[test]
fn several_lz4_frames_and_gzip_members_and_zstd_frames_are_one_payload() {
    let text = text(1_000);
    let whole = text.repeat(2);
    check(Compression::Lz4, &lz4(FrameInfo::new(), &text).repeat(2), &whole);
    check(Compression::Gzip, &gzip(&text).repeat(2), &whole);
    check(Compression::Zstd, &zstd::bulk::compress(&text, 3).expect("compresses").repeat(2), &whole);
}

#[test]
fn lz4_checksums_are_checked() {
    let info = FrameInfo::new().block_checksums(true).content_checksum(true).content_size(Some(400));
    let good = lz4(info, &text(400));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let mut inflater = Inflater::new();
        assert!(inflater.inflate(Compression::Lz4, &bad, LIMIT).is_err(), "flipped at {at}");
    }
}

#[test]
fn an_lz4_frame_cannot_choose_how_much_memory_is_taken() {
    // Blocks of 4 MB and a content of 2^63 bytes, of which nothing is there.
    let header = [0x04, 0x22, 0x4d, 0x18, 0b0110_1000, 0x70, 0, 0, 0, 0, 0, 0, 0, 0x80];
    for checksum in [0, header_checksum(&header[4..])] {
        let bomb = [&header[..], &[checksum], &[9, 0, 0, 0, 0x1f, 0x41, 1, 0, 0, 0, 0, 0, 0]].concat();
        check_refused(Compression::Lz4, &bomb, usize::MAX, InflateErrorKind::Corrupt(Compression::Lz4));
    }
}

/// A frame with linked blocks of at most 64 KB; `flags` adds to its header, `fields` follow the descriptor.
fn lz4_by_hand(flags: u8, fields: &[u8], blocks: &[&[u8]]) -> Vec<u8> {
    let header = [&[0b0100_0000 | flags, 0x40], fields].concat();
    let mut frame = [&[0x04, 0x22, 0x4d, 0x18][..], &header, &[header_checksum(&header)]].concat();
    for block in blocks {
        frame.extend_from_slice(block);
    }
    frame.extend([0; 4]);
    frame
}

#[test]
fn an_lz4_frame_is_held_to_what_its_header_says() {
    let refused = InflateErrorKind::Corrupt(Compression::Lz4);
    let stored: &[u8] = &[3, 0, 0, 0x80, b'a', b'b', b'c'];
    check(Compression::Lz4, &lz4_by_hand(0, &[], &[stored, stored]), b"abcabc");
    let sized = |size: u64| lz4_by_hand(0b1000, &size.to_le_bytes(), &[stored]);
    check(Compression::Lz4, &sized(3), b"abc");
    check_refused(Compression::Lz4, &sized(4), LIMIT, refused);
    check_refused(Compression::Lz4, &sized(u64::MAX), LIMIT, refused);
    let large = [&65_537_u32.to_le_bytes()[..3], &[0x80], &vec![7; 65_537]].concat();
    check_refused(Compression::Lz4, &lz4_by_hand(0, &[], &[&large]), LIMIT, refused);
    // A dictionary and a block size of 3 are not for Kafka.
    check_refused(Compression::Lz4, &lz4_by_hand(0b1, &[0; 4], &[stored]), LIMIT, refused);
}

#[test]
fn an_lz4_block_refers_to_its_own_frame_only() {
    // No literals, four bytes from three back; then the five literals that end a block.
    let back: &[u8] = &[9, 0, 0, 0, 0x00, 3, 0, 0x50, b'v', b'w', b'x', b'y', b'z'];
    let stored: &[u8] = &[3, 0, 0, 0x80, b'a', b'b', b'c'];
    check(Compression::Lz4, &lz4_by_hand(0, &[], &[stored, back]), b"abcabcavwxyz");
    let apart = [lz4_by_hand(0, &[], &[stored]), lz4_by_hand(0, &[], &[back])].concat();
    check_refused(Compression::Lz4, &apart, LIMIT, InflateErrorKind::Corrupt(Compression::Lz4));
}

/// The second byte of XXH32, for headers shorter than 16 bytes.
fn header_checksum(header: &[u8]) -> u8 {
    assert!(header.len() < 16);
    let mut hash = 0x1656_67b1_u32.wrapping_add(u32::try_from(header.len()).expect("short"));
    let (words, rest) = header.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(0xc2b2_ae3d));
        hash = hash.rotate_left(17).wrapping_mul(0x27d4_eb2f);
    }
    for byte in rest {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(0x1656_67b1));
        hash = hash.rotate_left(11).wrapping_mul(0x9e37_79b1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x85eb_ca77);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae3d);
    (hash ^ (hash >> 16)).to_le_bytes()[1]
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn gzip_of_every_size_is_read_and_its_checksum_checked() {
    for len in [0, 1, 1_000, 16_384, 16_385, 300_000] {
        let text = text(len);
        let good = gzip(&text);
        check(Compression::Gzip, &good, &text);
        let mut bad = good.clone();
        let crc_at = good.len() - 8;
        bad[crc_at] ^= 1;
        check_refused(Compression::Gzip, &bad, LIMIT, InflateErrorKind::Corrupt(Compression::Gzip));
        let garbage = [&good[..], b"more"].concat();
        check_refused(Compression::Gzip, &garbage, LIMIT, InflateErrorKind::Corrupt(Compression::Gzip));
    }
}

#[test]
fn zstd_of_every_level_and_with_streams_of_unknown_size_is_read() {
    let text = text(500_000);
    for level in [-5, 1, 3, 12, 19] {
        check(Compression::Zstd, &zstd::bulk::compress(&text, level).expect("compresses"), &text);
        check(Compression::Zstd, &zstd::stream::encode_all(&text[..], level).expect("compresses"), &text);
    }
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).expect("memory");
    encoder.include_checksum(true).expect("a setting");
    encoder.window_log(27).expect("a setting");
    encoder.write_all(&text).expect("memory");
    let mut data = encoder.finish().expect("memory");
    check(Compression::Zstd, &data, &text);
    *data.last_mut().expect("a checksum") ^= 1;
    check_refused(Compression::Zstd, &data, LIMIT, InflateErrorKind::Corrupt(Compression::Zstd));
}

#[test]
fn zstd_that_compresses_beyond_the_usual_is_read() {
    for len in [100_000, 131_072, 131_073, 3_000_000] {
        let zeros = vec![0; len];
        check(Compression::Zstd, &zstd::bulk::compress(&zeros, 3).expect("compresses"), &zeros);
        check(Compression::Zstd, &zstd::stream::encode_all(&zeros[..], 3).expect("compresses"), &zeros);
    }
}

#[test]
fn a_zstd_frame_cannot_choose_how_much_memory_is_taken() {
    let corrupt = InflateErrorKind::Corrupt(Compression::Zstd);
    // A content size of 2^62 and one raw block of a byte.
    let sized =
        [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x40][..], &[0x09, 0, 0, 0x41]].concat();
    check_refused(Compression::Zstd, &sized, usize::MAX, corrupt);
    // A window of 2^41 bytes and an empty last block.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0, 0];
    check_refused(Compression::Zstd, &window, usize::MAX, corrupt);
    // 2,000 blocks that each claim to be compressed and hold two bytes of nothing.
    let mut blocks = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for _ in 0..2_000 {
        blocks.extend([0x14, 0, 0, 0, 0]);
    }
    blocks.extend([0x01, 0, 0]);
    let mut inflater = Inflater::new();
    let (result, seen) =
        measure_allocations(|| inflater.inflate(Compression::Zstd, &blocks, usize::MAX).map(<[u8]>::len));
    assert!(result.is_err() || result == Ok(0));
    assert!(seen.largest <= 512 << 10, "{seen:?}");
}

#[test]
fn a_zstd_bomb_of_repeated_bytes_is_known_by_its_block_headers() {
    let repeated = |len: u32, blocks: usize| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
        for left in (0..blocks).rev() {
            let header = (len << 3) | (1 << 1) | u32::from(left == 0);
            frame.extend([&header.to_le_bytes()[..3], &[0x41]].concat());
        }
        frame
    };
    check(Compression::Zstd, &repeated(131_072, 2), &vec![0x41; 262_144]);
    for (bomb, expect) in [
        (repeated(131_072, 9), InflateErrorKind::TooLarge(Compression::Zstd)),
        (repeated(131_073, 1), InflateErrorKind::Corrupt(Compression::Zstd)),
    ] {
        let mut inflater = Inflater::new();
        let (result, seen) =
            measure_allocations(|| inflater.inflate(Compression::Zstd, &bomb, LIMIT).map(<[u8]>::len));
        assert_eq!(result.map_err(|error| error.kind()), Err(expect));
        assert_eq!(seen.count, 0, "nothing is inflated");
    }
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    let bombs = [
        (Compression::Gzip, gzip(&zeros)),
        (Compression::Snappy, framed_snappy(&vec![&zeros[..65_536]; 1_024])),
        (Compression::Lz4, lz4(FrameInfo::new(), &zeros)),
        (Compression::Zstd, zstd::bulk::compress(&zeros, 3).expect("compresses")),
    ];
    for (codec, bomb) in bombs {
        let mut inflater = Inflater::new();
        let (result, seen) = measure_allocations(|| inflater.inflate(codec, &bomb, LIMIT).map(<[u8]>::len));
        assert_eq!(result.map_err(|error| error.kind()), Err(InflateErrorKind::TooLarge(codec)));
        assert!(seen.largest <= LIMIT, "{codec}: {seen:?}");
        assert!(inflater.capacity() <= LIMIT, "{codec}");
        assert_eq!(inflater.inflate(codec, &bomb, usize::MAX).map(<[u8]>::len), Ok(zeros.len()), "{codec}");
    }
}

#[test]
fn an_inflater_serves_codecs_in_turn_and_recovers_from_damage() {
    let mut inflater = Inflater::new();
    for len in [50_000, 10, 70_000, 0] {
        let text = text(len);
        let payloads = [
            (Compression::Gzip, gzip(&text)),
            (Compression::Zstd, zstd::bulk::compress(&text, 3).expect("compresses")),
            (Compression::Snappy, raw_snappy(&text)),
            (Compression::Lz4, lz4(FrameInfo::new().block_mode(BlockMode::Linked), &text)),
            (Compression::None, text.clone()),
        ];
        for (codec, data) in payloads {
            assert!(inflater.inflate(Compression::Zstd, b"\x28\xb5\x2f\xfd damage", LIMIT).is_err());
            assert_eq!(inflater.inflate(codec, &data, LIMIT), Ok(&text[..]), "{codec}");
        }
    }
}

proptest! {
    #[test]
    fn every_cut_and_flip_of_compressed_data_is_refused_or_read(
        data in proptest::collection::vec(0..4_u8, 0..400),
        at in any::<proptest::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let all = [
            (Compression::Gzip, gzip(&data)),
            (Compression::Snappy, raw_snappy(&data)),
            (Compression::Snappy, framed_snappy(&[&data, &data])),
            (Compression::Lz4, lz4(FrameInfo::new().block_mode(BlockMode::Linked), &data)),
            (Compression::Zstd, zstd::bulk::compress(&data, 3).expect("compresses")),
        ];
        for (codec, mut bytes) in all {
            let at = at.index(bytes.len());
            let mut inflater = Inflater::new();
            let _ = inflater.inflate(codec, &bytes[..at], LIMIT);
            bytes[at] ^= 1 << bit;
            let _ = inflater.inflate(codec, &bytes, LIMIT);
        }
    }
}

const LIMIT: usize = 1 << 20;
