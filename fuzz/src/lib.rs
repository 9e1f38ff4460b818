//! The template of message targets: bytes, to a value, to bytes, to the same value.

/// Makes a target of `messages::Request` or `messages::Response`.
///
/// The first two bytes of the input choose API and version, so that few inputs are wasted; the rest is the message.
/// What decodes has to encode, in one buffer and in parts; the bytes have to decode to an equal message, and the
/// owned copy of it has to encode to the same bytes.
#[macro_export]
macro_rules! message_target {
    ($message:ident) => {
        ::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            use ::kolumn_kafka_wire::{Encoded, Reader, messages::$message};

            let Some((&[api, version], body)) = input.split_first_chunk() else { return };
            let (key, version) = $crate::api_and_version(api, version);
            let mut reader = Reader::new(body);
            let Ok(message) = $message::read(key, version, &mut reader) else { return };
            let encode = |message: &$message<'_>| {
                Encoded::build_contiguous(|writer| message.write(writer, version)).expect("what was decoded encodes")
            };
            let bytes = encode(&message);
            let parts = Encoded::build(|writer| message.write(writer, version)).expect("also in parts");
            assert_eq!(parts.len(), bytes.len());

            let mut reader = Reader::shared(&bytes);
            let again = $message::read(key, version, &mut reader).expect("what was encoded decodes");
            reader.finish().expect("and nothing is left");
            // by text, because NaN is not equal to itself
            assert_eq!(format!("{again:?}"), format!("{message:?}"));
            assert_eq!(encode(&again.into_owned()), bytes);
        });
    };
}

/// Any API that the codec knows, and any of its versions or one next to them.
#[must_use]
pub fn api_and_version(api: u8, version: u8) -> (kolumn_kafka_wire::ApiKey, i16) {
    let keys = kolumn_kafka_wire::ApiKey::all();
    let nth = usize::from(api) % keys.len();
    let key = kolumn_kafka_wire::ApiKey::all().nth(nth).expect("one of them");
    let versions = key.versions().expect("a known key");
    (key, i16::from(version) % (versions.max + 2))
}
