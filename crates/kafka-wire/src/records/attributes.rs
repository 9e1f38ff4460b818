//! The attributes of a batch: codec, timestamp type and flags.

use core::fmt;

/// The 16 attribute bits of a batch, as sent.
///
/// Bits 0 to 2 name the codec, bit 3 the timestamp type, bit 4 a transaction, bit 5 control records,
/// bit 6 that the base timestamp is a delete horizon. The rest is unused and kept as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes(i16);

impl Attributes {
    pub(super) const CODEC_MASK: i16 = 0b111;
    pub(super) const LOG_APPEND_TIME: i16 = 1 << 3;
    pub(super) const TRANSACTIONAL: i16 = 1 << 4;
    pub(super) const CONTROL: i16 = 1 << 5;
    pub(super) const DELETE_HORIZON: i16 = 1 << 6;

    /// The attributes with these bits.
    #[must_use]
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// All bits, unknown ones included.
    #[must_use]
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// The codec of the payload.
    ///
    /// # Errors
    /// If the codec is one of 5 to 7, which nobody has defined.
    pub const fn codec(self) -> Result<Compression, UnknownCodec> {
        match self.0 & Self::CODEC_MASK {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            unknown => Err(UnknownCodec(unknown)),
        }
    }

    /// Whose clock the timestamps are from.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the records are control records (transaction markers), which applications never see.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time from which compaction may drop the batch's tombstones.
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attributes({:#06x})", self.0)
    }
}

/// How a payload is compressed.
#[expect(clippy::exhaustive_enums, reason = "three bits of the format, and a sixth codec is a new format")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As a gzip stream.
    Gzip,
    /// As snappy: one raw block, or the framing of the Java client.
    Snappy,
    /// As an LZ4 frame.
    Lz4,
    /// As a Zstandard frame.
    Zstd,
}

impl Compression {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec's name in topic and client settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Whether this build can read and write the codec; each is behind a feature of its name.
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::None => true,
            Self::Gzip => cfg!(feature = "gzip"),
            Self::Snappy => cfg!(feature = "snappy"),
            Self::Lz4 => cfg!(feature = "lz4"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    pub(super) const fn bits(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose clock a batch's timestamps are from.
#[expect(clippy::exhaustive_enums, reason = "one bit of the format")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer's: each record has its own.
    #[default]
    CreateTime,
    /// The broker's: the batch's maximum is the timestamp of all its records.
    LogAppendTime,
}

/// The codec number of a batch is one that nobody has defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCodec(i16);

impl UnknownCodec {
    /// The number, 5 to 7.
    #[must_use]
    pub const fn number(self) -> i16 {
        self.0
    }
}

impl fmt::Display for UnknownCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown compression codec {}", self.0)
    }
}

impl core::error::Error for UnknownCodec {}
