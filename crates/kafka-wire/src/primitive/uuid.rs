//! 16 bytes that name a topic or a directory; zero means none.

use core::fmt;

/// A UUID, `Uuid::ZERO` where there is none.
///
/// Shown as Kafka shows it: 22 characters of URL-safe base64 without padding.
///
/// ```
/// use kolumn_kafka_wire::Uuid;
///
/// assert!(Uuid::default().is_zero());
/// assert_eq!(Uuid::from_bytes([0xfb; 16]).to_string(), "-_v7-_v7-_v7-_v7-_v7-w");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// No UUID.
    pub const ZERO: Self = Self([0; 16]);

    /// From its bytes, most significant first.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, most significant first.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Whether it stands for none.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Uuid> for [u8; 16] {
    fn from(uuid: Uuid) -> Self {
        uuid.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for position in 0..22 {
            // 21 groups of six bits, and two bits that are left, filled up on the right
            let six = if position < 21 { bits >> (122 - 6 * position) } else { bits << 4 } & 0x3f;
            let digit = usize::try_from(six).ok().and_then(|six| DIGITS.get(six)).copied().unwrap_or(b'A');
            write!(f, "{}", char::from(digit))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
