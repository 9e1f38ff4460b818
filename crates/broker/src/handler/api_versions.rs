//! `ApiVersions`: what is served here, in a form that clients of every age can read.

use kolumn_kafka_wire::ErrorCode;
use kolumn_kafka_wire::messages::api_versions_response::ApiVersion;
use kolumn_kafka_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};

use crate::api::APIS;
use crate::dispatch::{Head, Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(request: &Request) -> Result<Started, CloseReason> {
    let message: ApiVersionsRequest<'_> = request.decode()?;
    let named = request.head.version < FIRST_VERSION_WITH_NAME
        || (is_software_name(&message.client_software_name)
            && is_software_name(&message.client_software_version));
    let response = if named {
        ApiVersionsResponse { api_keys: table().into(), ..ApiVersionsResponse::default() }
    } else {
        ApiVersionsResponse { error_code: ErrorCode::INVALID_REQUEST, ..ApiVersionsResponse::default() }
    };
    Ok(Started::Now(request.head.answer(&response)))
}

/// Answers a version that is not served, whatever its body is: in version 0, which every client can read, so that the
/// client asks again in a version of the table.
pub(crate) fn refuse_version(head: Head) -> Result<Started, CloseReason> {
    if head.key != kolumn_kafka_wire::ApiKey::API_VERSIONS {
        return Err(CloseReason::Refused("a version that is not in the table"));
    }
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: table().into(),
        ..ApiVersionsResponse::default()
    };
    Ok(Started::Now(head.answer_with(&response, 0, Vec::new())))
}

fn table() -> Vec<ApiVersion<'static>> {
    APIS.iter()
        .map(|api| ApiVersion {
            api_key: api.key.code(),
            min_version: api.versions.min,
            max_version: api.versions.max,
            ..ApiVersion::default()
        })
        .collect()
}

/// `name = ALPHANUM [ *( ALPHANUM / "-" / "." ) ALPHANUM ]`
fn is_software_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let ends = [name.bytes().next(), name.bytes().last()];
    ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric())) && name.bytes().all(inner)
}

const FIRST_VERSION_WITH_NAME: i16 = 3;

#[cfg(test)]
mod tests {
    use super::is_software_name;

    #[test]
    fn software_names_begin_and_end_with_a_letter_or_digit() {
        for good in ["a", "librdkafka", "2.15.1", "apache-kafka-java"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-bad-", "-", "a-", ".a", "a b", "ä", "a_b"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
