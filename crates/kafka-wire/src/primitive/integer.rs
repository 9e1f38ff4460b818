//! Values of fixed length: numbers, booleans, error codes.

use super::{Form, Uuid, Value};
use crate::error::{DecodeError, EncodeError};
use crate::error_code::ErrorCode;
use crate::reader::Reader;
use crate::writer::Writer;

macro_rules! fixed {
    ($($type:ty, $len:literal, $method:ident;)*) => {$(
        impl Value<'_> for $type {
            type Owned = Self;
            const LEN: Option<usize> = Some($len);

            fn read_value(reader: &mut Reader<'_>, _: Form) -> Result<Self, DecodeError> {
                reader.$method()
            }

            fn write_value(&self, writer: &mut Writer, _: Form) -> Result<(), EncodeError> {
                writer.$method(*self);
                Ok(())
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

fixed! {
    bool, 1, bool;
    i8, 1, i8;
    i16, 2, i16;
    i32, 4, i32;
    i64, 8, i64;
    u16, 2, u16;
    u32, 4, u32;
    f64, 8, f64;
    Uuid, 16, uuid;
    ErrorCode, 2, error_code;
}

impl Reader<'_> {
    /// Reads an int16 that is an error code.
    ///
    /// # Errors
    /// If too few bytes are left.
    pub fn error_code(&mut self) -> Result<ErrorCode, DecodeError> {
        self.i16().map(ErrorCode::new)
    }
}

impl Writer {
    /// Writes an int16 that is an error code.
    pub fn error_code(&mut self, value: ErrorCode) {
        self.i16(value.code());
    }

    /// Writes 16 bytes.
    pub fn uuid(&mut self, value: Uuid) {
        self.bytes(value.as_bytes());
    }
}
