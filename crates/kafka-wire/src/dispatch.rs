//! Requests and responses of every kind, told apart by the API key.

/// Makes the enums from the generated table of `(constant, variant, request, response)`.
macro_rules! dispatch {
    ($($key:ident, $name:ident, $request:ident, $response:ident;)*) => {
        /// A request of any kind.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        #[expect(clippy::large_enum_variant, reason = "boxing would allocate for each request")]
        pub enum Request<'a> {$(
            #[doc = concat!("`", stringify!($name), "`.")]
            $name($request<'a>),
        )*}

        /// A response of any kind.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Response<'a> {$(
            #[doc = concat!("`", stringify!($name), "`.")]
            $name($response<'a>),
        )*}

        $crate::dispatch::dispatch!(@methods Request, "request", $($key, $name, $request;)*);
        $crate::dispatch::dispatch!(@methods Response, "response", $($key, $name, $response;)*);

        $(
            impl<'a> $crate::RequestMessage<'a> for $request<'a> {
                const API_KEY: $crate::ApiKey = $crate::ApiKey::$key;
                type Response<'r> = $response<'r>;
            }

            impl<'a> $crate::ResponseMessage<'a> for $response<'a> {
                const API_KEY: $crate::ApiKey = $crate::ApiKey::$key;
            }
        )*
    };
    (@methods $enum:ident, $what:literal, $($key:ident, $name:ident, $message:ident;)*) => {
        impl<'a> $enum<'a> {
            #[doc = concat!("The key of the ", $what, ".")]
            #[must_use]
            pub fn api_key(&self) -> $crate::ApiKey {
                match self {$(
                    $enum::$name(_) => $crate::ApiKey::$key,
                )*}
            }

            #[doc = concat!("Reads the ", $what, " of an API and leaves the reader behind it.")]
            ///
            /// # Errors
            /// If the key or the version is unknown or the bytes are not this message.
            pub fn read(
                key: $crate::ApiKey,
                version: i16,
                reader: &mut $crate::Reader<'a>,
            ) -> Result<Self, $crate::DecodeError> {
                use $crate::Message as _;
                match key {
                    $($crate::ApiKey::$key => $message::read(reader, version).map($enum::$name),)*
                    unknown => Err(reader.error($crate::error::Reason::ApiKey(unknown.code()))),
                }
            }

            #[doc = concat!("Writes the ", $what, ".")]
            ///
            /// # Errors
            /// If the version does not exist or cannot express the message.
            pub fn write(&self, writer: &mut $crate::Writer, version: i16) -> Result<(), $crate::EncodeError> {
                use $crate::Message as _;
                match self {$(
                    $enum::$name(message) => message.write(writer, version),
                )*}
            }

            /// Copies what is borrowed; see [`crate::Value::into_owned`].
            #[must_use]
            pub fn into_owned(self) -> $enum<'static> {
                use $crate::Value as _;
                match self {$(
                    $enum::$name(message) => $enum::$name(message.into_owned()),
                )*}
            }
        }

        $(
            impl<'a> From<$message<'a>> for $enum<'a> {
                fn from(message: $message<'a>) -> Self {
                    $enum::$name(message)
                }
            }
        )*
    };
}

pub(crate) use dispatch;
