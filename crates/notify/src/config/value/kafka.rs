//! Values that only Kafka has: mechanisms, versions, codecs, topics.

use std::fmt;
use std::str::FromStr;

/// How a client proves to a broker who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mechanism {
    /// The password itself is sent.
    #[default]
    Plain,
    /// SCRAM with SHA-256: the password is proven, not sent.
    ScramSha256,
    /// SCRAM with SHA-512: the password is proven, not sent.
    ScramSha512,
}

impl Mechanism {
    /// The name that Kafka's protocol has for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `plain`, `sha256` and `sha512`, with or without `scram-` or `sasl-` in front, in any case, `-` and `_` alike.
impl FromStr for Mechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let word: String =
            text.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
        let word = word.strip_prefix("sasl").unwrap_or(&word);
        match word {
            "plain" => Ok(Self::Plain),
            "sha256" | "scramsha256" => Ok(Self::ScramSha256),
            "sha512" | "scramsha512" => Ok(Self::ScramSha512),
            _ => Err("is none of `plain`, `sha256` and `sha512`".into()),
        }
    }
}

/// What a TLS server asks of its clients. It is configured here because `MinIO`'s documents have it; it has no effect on a
/// client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ClientAuth {
    /// 0: no certificate is asked for.
    #[default]
    NoClientCert,
    /// 1: one is asked for, and may be left out.
    RequestClientCert,
    /// 2: one is needed, whoever signed it.
    RequireAnyClientCert,
    /// 3: one that is given has to be valid.
    VerifyClientCertIfGiven,
    /// 4: a valid one is needed.
    RequireAndVerifyClientCert,
}

impl FromStr for ClientAuth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [
            ("NoClientCert", Self::NoClientCert),
            ("RequestClientCert", Self::RequestClientCert),
            ("RequireAnyClientCert", Self::RequireAnyClientCert),
            ("VerifyClientCertIfGiven", Self::VerifyClientCertIfGiven),
            ("RequireAndVerifyClientCert", Self::RequireAndVerifyClientCert),
        ];
        let named = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let numbered = || all.get(text.parse::<usize>().ok()?);
        named.or_else(numbered).map(|(_, found)| *found).ok_or_else(|| "is not a number from 0 to 4".into())
    }
}

/// A version of Kafka, `0.x.y.z` or `x.y.z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u16; 4]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [0, major, minor, patch] => write!(f, "0.{major}.{minor}.{patch}"),
            [major, minor, patch, _] => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut numbers = [0_u16; 4];
            let is_old = text.starts_with("0.");
            let parts_len = if is_old { 4 } else { 3 };
            let mut parts = text.split('.');
            for number in numbers.iter_mut().take(parts_len) {
                let part = parts.next()?;
                if !part.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                *number = part.parse().ok()?;
            }
            let is_whole = parts.next().is_none() && (is_old || numbers.first() != Some(&0));
            is_whole.then_some(Self(numbers))
        };
        parse().ok_or_else(|| "is not a version such as `2.8.0` or `0.11.0.2`".into())
    }
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// gzip, with levels from 0 to 9.
    Gzip,
    /// snappy, which has no levels.
    Snappy,
    /// lz4, with levels from 0 to 17.
    Lz4,
    /// zstd, with levels from -131072 to 22.
    Zstd,
}

impl Codec {
    /// The name in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A codec in any case; none for `none`.
pub(in crate::config) fn codec(value: &str) -> Result<Option<Codec>, String> {
    let all = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    if value.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let found = all.into_iter().find(|codec| codec.as_str().eq_ignore_ascii_case(value));
    found.map(Some).ok_or_else(|| "is none of `none`, `gzip`, `snappy`, `lz4` and `zstd`".into())
}

/// Whether the codec has this level.
pub(in crate::config) fn compression_level(codec: Codec, level: i32) -> Result<(), String> {
    let levels = match codec {
        Codec::Gzip => 0..=9,
        Codec::Snappy => return Err("snappy has no levels".into()),
        Codec::Lz4 => 0..=17,
        Codec::Zstd => -131_072..=22,
    };
    if levels.contains(&level) {
        Ok(())
    } else {
        Err(format!("the levels of {codec} are {} to {}", levels.start(), levels.end()))
    }
}

/// `[a-zA-Z0-9._-]`, 1 to 249 of them, neither `.` nor `..`: what Kafka accepts as a topic's name.
pub(crate) fn topic(value: &str) -> Result<String, String> {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if value == "." || value == ".." || !value.bytes().all(is_legal) {
        return Err("is no name of a topic: letters, digits, `.`, `_` and `-`".into());
    }
    if (1..=TOPIC_LEN_MAX).contains(&value.len()) {
        Ok(value.into())
    } else {
        Err(format!("is longer than {TOPIC_LEN_MAX} characters, or empty"))
    }
}

const TOPIC_LEN_MAX: usize = 249;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_read_in_all_spellings_and_no_other_word_is_plain() {
        for text in ["plain", "PLAIN", "Plain", "SASL_PLAIN", "sasl-plain"] {
            assert_eq!(text.parse(), Ok(Mechanism::Plain), "{text}");
        }
        for text in ["sha256", "SHA-256", "sha_256", "scram-sha-256", "SCRAM-SHA-256", "scram_sha256"] {
            assert_eq!(text.parse(), Ok(Mechanism::ScramSha256), "{text}");
        }
        for text in ["sha512", "SHA512", "scram-sha-512", "SCRAM-SHA-512", "ScramSha512"] {
            assert_eq!(text.parse(), Ok(Mechanism::ScramSha512), "{text}");
        }
        for text in ["", "scram", "SCRAM", "sha1", "gssapi", "oauthbearer", "plain text"] {
            assert!(text.parse::<Mechanism>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_has_three_parts_or_four_after_a_zero() {
        for text in ["2.8.0", "0.11.0.2", "0.8.2.0", "4.1.1", "10.20.30"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        for text in
            ["", "2", "2.8", "2.8.0.0", "0.11.0", "2.8.x", "2.8.0 ", "v2.8.0", "2..0", "2.8.+1", "70000.0.0"]
        {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        let [old, new] = ["0.11.0.2", "2.8.0"].map(|text| text.parse::<Version>().unwrap());
        assert!(old < new);
    }

    #[test]
    fn client_auth_is_a_number_or_a_name() {
        assert_eq!("0".parse(), Ok(ClientAuth::NoClientCert));
        assert_eq!("4".parse(), Ok(ClientAuth::RequireAndVerifyClientCert));
        assert_eq!("requireanyclientcert".parse(), Ok(ClientAuth::RequireAnyClientCert));
        for text in ["", "5", "-1", "on", "1.0"] {
            assert!(text.parse::<ClientAuth>().is_err(), "{text}");
        }
    }

    #[test]
    fn codecs_are_read_in_any_case_and_have_levels_of_their_own() {
        assert_eq!(codec("NONE"), Ok(None));
        assert_eq!(codec("Zstd"), Ok(Some(Codec::Zstd)));
        assert!(codec("brotli").is_err());
        assert_eq!(compression_level(Codec::Gzip, 0), Ok(()));
        assert_eq!(compression_level(Codec::Zstd, -5), Ok(()));
        assert_eq!(compression_level(Codec::Gzip, 10), Err("the levels of gzip are 0 to 9".into()));
        assert!(compression_level(Codec::Snappy, 1).is_err());
    }

    #[test]
    fn a_topic_is_what_kafka_accepts() {
        assert_eq!(topic("bucket-events_1.x"), Ok("bucket-events_1.x".into()));
        for text in ["", ".", "..", "a b", "a/b", "<string>", "ü", &"x".repeat(250)] {
            assert!(topic(text).is_err(), "{text}");
        }
        assert!(topic(&"x".repeat(249)).is_ok());
    }
}
