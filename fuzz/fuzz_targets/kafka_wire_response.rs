//! Arbitrary bytes as a response of any kind: never a panic, and what decodes survives encoding.
#![no_main]

fuzz::message_target!(Response);
