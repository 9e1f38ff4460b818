//! Addresses of brokers, and lists of them.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::super::error::shortened;

/// Where a broker listens. Printed with brackets around an IPv6 address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    /// The port of an address that has none: that of Kafka.
    pub const PORT: u16 = 9092;

    /// A name, an IPv4 address, or an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// From 1 to 65535.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// ```text
/// address => host [":" port] | [":" port] | "[" ipv6 "]" [":" port] | ipv6
/// host    => label ("." label)* ["."]        label => 1 to 63 of [A-Za-z0-9-]
/// ipv6    => as RFC 4291 has it ["%" zone]
/// ```
///
/// Without a port it is 9092; without a host, this machine's.
impl FromStr for HostPort {
    type Err = ParseHostPortError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ParseHostPortError::Empty);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or(ParseHostPortError::Ipv6)?;
            let port = match after.strip_prefix(':') {
                Some(port) => parse_port(port)?,
                None if after.is_empty() => Self::PORT,
                None => return Err(ParseHostPortError::Ipv6),
            };
            return Ok(Self { host: parse_ipv6(host)?, port });
        }
        let Some((host, port)) = text.split_once(':') else {
            return Ok(Self { host: parse_name(text)?, port: Self::PORT });
        };
        if port.contains(':') {
            let host = parse_ipv6(text).map_err(|_| ParseHostPortError::Colons)?;
            return Ok(Self { host, port: Self::PORT });
        }
        let host = if host.is_empty() { "localhost".into() } else { parse_name(host)? };
        Ok(Self { host, port: parse_port(port)? })
    }
}

/// Why a text is not the address of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseHostPortError {
    /// It has no characters.
    #[error("the address is empty")]
    Empty,
    /// The host is no name.
    #[error(
        "the host is not letters, digits and `-` in parts between dots, of at most 63 characters each and 253 in all"
    )]
    Host,
    /// The port is no number that a broker can listen at.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// What stands in brackets is no address.
    #[error("an address in brackets has the form `[ipv6]:port`")]
    Ipv6,
    /// It is neither a host with a port nor an IPv6 address.
    #[error("the address has several `:`, but is no IPv6 address")]
    Colons,
    /// There is a scheme that no broker is written with.
    #[error(
        "the scheme is none of kafka, tcp, plaintext, ssl, tls, sasl_plaintext, sasl_ssl, http and https"
    )]
    Scheme,
    /// A user or a password stands in front of the host.
    #[error("an address has no user: use the keys `sasl_username` and `sasl_password`")]
    User,
    /// Something follows the port.
    #[error("an address has no path: it ends after the port")]
    Path,
}

/// A list of brokers, and what in it deserves a warning.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::config) struct BrokerList {
    pub(in crate::config) addresses: Vec<HostPort>,
    /// The first scheme that was left out.
    pub(in crate::config) scheme: Option<Scheme>,
}

/// What stood in front of `://`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Scheme {
    pub(in crate::config) name: &'static str,
    /// Whether it means TLS elsewhere.
    pub(in crate::config) is_secure: bool,
}

/// `list => [address] ("," [address])*`, with blanks anywhere around an address, and a scheme that is left out.
///
/// `MinIO`'s documents have an example with `https://` and a blank after the comma, which `MinIO` itself refuses; so both
/// are accepted here. A scheme says nothing: whether TLS is used is told by the key `tls` alone.
pub(in crate::config) fn brokers(value: &str) -> Result<BrokerList, String> {
    let mut list = BrokerList::default();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let in_item = |reason: ParseHostPortError| {
            if item.contains('@') {
                reason.to_string()
            } else {
                format!("in `{}`, {reason}", shortened(item))
            }
        };
        let (scheme, address) = split_scheme(item).map_err(in_item)?;
        let address: HostPort = address.parse().map_err(in_item)?;
        let is_same =
            |other: &HostPort| other.port == address.port && other.host.eq_ignore_ascii_case(&address.host);
        if list.addresses.iter().any(is_same) {
            return Err(format!("names {address} twice"));
        }
        if list.addresses.len() == BROKERS_MAX {
            return Err(format!("names more than {BROKERS_MAX} brokers"));
        }
        list.addresses.push(address);
        list.scheme = list.scheme.or(scheme);
    }
    if list.addresses.is_empty() { Err("names no broker".into()) } else { Ok(list) }
}

fn split_scheme(item: &str) -> Result<(Option<Scheme>, &str), ParseHostPortError> {
    let (scheme, address) = match item.split_once("://") {
        None => (None, item),
        Some((name, address)) => {
            let scheme = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name));
            (Some(*scheme.ok_or(ParseHostPortError::Scheme)?), address)
        }
    };
    if address.contains('@') {
        return Err(ParseHostPortError::User);
    }
    if address.contains(['/', '?', '#']) {
        return Err(ParseHostPortError::Path);
    }
    Ok((scheme, address))
}

fn parse_name(text: &str) -> Result<String, ParseHostPortError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    if name.len() <= 253 && name.split('.').all(is_label) {
        Ok(text.into())
    } else {
        Err(ParseHostPortError::Host)
    }
}

/// An address, whose zone is kept as it is.
fn parse_ipv6(text: &str) -> Result<String, ParseHostPortError> {
    let (address, zone) = text.split_once('%').unwrap_or((text, "_"));
    let is_zone = !zone.is_empty() && zone.bytes().all(|b| b.is_ascii_graphic() && !b"[]%:".contains(&b));
    if is_zone && address.parse::<Ipv6Addr>().is_ok() {
        Ok(text.into())
    } else {
        Err(ParseHostPortError::Ipv6)
    }
}

fn parse_port(text: &str) -> Result<u16, ParseHostPortError> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0).ok_or(ParseHostPortError::Port)
}

const BROKERS_MAX: usize = 1_000;

const SCHEMES: &[Scheme] = &[
    Scheme { name: "kafka", is_secure: false },
    Scheme { name: "tcp", is_secure: false },
    Scheme { name: "plaintext", is_secure: false },
    Scheme { name: "sasl_plaintext", is_secure: false },
    Scheme { name: "http", is_secure: false },
    Scheme { name: "https", is_secure: true },
    Scheme { name: "ssl", is_secure: true },
    Scheme { name: "tls", is_secure: true },
    Scheme { name: "sasl_ssl", is_secure: true },
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&str, ParseHostPortError>) {
        let printed = text.parse::<HostPort>().map(|address| address.to_string());
        assert_eq!(printed.as_deref(), expect.as_ref().copied(), "{text}");
    }

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        check("kafka1.example.com:2021", Ok("kafka1.example.com:2021"));
        check("kafka1", Ok("kafka1:9092"));
        check("kafka.example.", Ok("kafka.example.:9092"));
        check("10.0.0.1:1", Ok("10.0.0.1:1"));
        check(":9093", Ok("localhost:9093"));
        check("[::1]:65535", Ok("[::1]:65535"));
        check("[::1]", Ok("[::1]:9092"));
        check("2001:db8::1", Ok("[2001:db8::1]:9092"));
        check("[fe80::1%eth0]:9092", Ok("[fe80::1%eth0]:9092"));
        check(&format!("{}.x:1", "a".repeat(63)), Ok(&format!("{}.x:1", "a".repeat(63))));
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        use ParseHostPortError::{Colons, Empty, Host, Ipv6, Port};
        check("", Err(Empty));
        check("a b:1", Err(Host));
        check("a..b:1", Err(Host));
        check("under_score:1", Err(Host));
        check("ä:1", Err(Host));
        check(&"a".repeat(64), Err(Host));
        check(&["abcdefgh"; 29].join("."), Err(Host));
        check("a:", Err(Port));
        check("a:0", Err(Port));
        check("a:65536", Err(Port));
        check("a:-1", Err(Port));
        check("a:+1", Err(Port));
        check("a:b", Err(Port));
        check("a:1:2", Err(Colons));
        check("[::1", Err(Ipv6));
        check("[::1]9092", Err(Ipv6));
        check("[kafka]:9092", Err(Ipv6));
        check("[::1%]:9092", Err(Ipv6));
    }

    #[track_caller]
    fn check_list(text: &str, expect: Result<(&[&str], Option<&str>), &str>) {
        let list = brokers(text);
        let addresses =
            |list: &BrokerList| list.addresses.iter().map(HostPort::to_string).collect::<Vec<_>>();
        match (list, expect) {
            (Ok(list), Ok((expect, scheme))) => {
                assert_eq!(addresses(&list), expect, "{text}");
                assert_eq!(list.scheme.map(|scheme| scheme.name), scheme, "{text}");
            }
            (Err(reason), Err(expect)) => assert!(reason.contains(expect), "{text}: {reason}"),
            (list, expect) => panic!("{text}: {list:?}, not {expect:?}"),
        }
    }

    #[test]
    fn a_list_may_have_blanks_empty_items_and_schemes() {
        let two: &[&str] = &["k1:9092", "k2:9093"];
        check_list("k1:9092,k2:9093", Ok((two, None)));
        check_list(" k1 , k2:9093 ,", Ok((two, None)));
        check_list("kafka://k1,PLAINTEXT://k2:9093", Ok((two, Some("kafka"))));
        check_list("k1, SSL://k2:9093", Ok((two, Some("ssl"))));
        check_list(
            "https://kafka1.example.net:9200, https://kafka2.example.net:9200",
            Ok((&["kafka1.example.net:9200", "kafka2.example.net:9200"], Some("https"))),
        );
    }

    #[test]
    fn a_list_without_sense_is_refused() {
        check_list("", Err("names no broker"));
        check_list(" , ", Err("names no broker"));
        check_list("k1,K1:9092", Err("K1:9092 twice"));
        check_list("ftp://k1", Err("scheme"));
        check_list("https://k1/", Err("path"));
        check_list("k1:9092/topic", Err("path"));
        check_list("k1 k2", Err("in `k1 k2`, the host"));
        let many: Vec<String> = (0..=BROKERS_MAX).map(|i| format!("k{i}")).collect();
        check_list(&many.join(","), Err("more than 1000"));
    }

    #[test]
    fn the_password_of_a_url_is_not_repeated() {
        let reason = brokers("k1,https://user:hunter2@k2:9092").unwrap_err();
        assert!(reason.contains("sasl_password") && !reason.contains("hunter2"), "{reason}");
    }

    proptest! {
        #[test]
        fn an_address_that_is_read_prints_as_one_that_reads_the_same(text in "[a-z0-9.:%\\[\\]-]{0,24}") {
            if let Ok(address) = text.parse::<HostPort>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
