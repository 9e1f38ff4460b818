//! The settings of the SQL servers that a program runs beside its broker.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, de};

use super::SettingsError;

/// SQL over the topics. The broker itself answers none: these settings are for the program that starts it, so that all of
/// a program's settings are in one file. A program without SQL should warn where they are not the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SqlSettings {
    /// Where Arrow Flight SQL is served; `none` (in TOML the text `"none"`): nowhere. Default `127.0.0.1:8815`.
    #[serde(deserialize_with = "address_or_none")]
    pub listen: Option<SocketAddr>,
    /// Where PostgreSQL's wire protocol is served. Default `none`.
    #[serde(deserialize_with = "address_or_none")]
    pub postgres_listen: Option<SocketAddr>,
    /// Nobody has to say who they are. So addresses that others than this machine can reach are refused, unless this is
    /// true. Default false.
    pub open_to_others: bool,
    /// Bytes of memory that all queries together may take to sort, group and join; what needs more spills to the disk.
    /// Default 536 870 912, 512 MiB.
    pub memory_len_max: usize,
    /// Bytes that all queries together may spill to the disk. Default 8 589 934 592, 8 GiB.
    pub spill_len_max: u64,
    /// How long a statement may take, to its last row. Default 600 000, ten minutes.
    pub statement_timeout_ms: u64,
    /// Statements that run at a time; more of them wait. Default 32.
    pub statements_max: usize,
}

impl Default for SqlSettings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 8815))),
            postgres_listen: None,
            open_to_others: false,
            memory_len_max: 512 << 20,
            spill_len_max: 8 << 30,
            statement_timeout_ms: 600_000,
            statements_max: 32,
        }
    }
}

impl SqlSettings {
    /// Reads an address, or `none`, as it is written in a file of settings.
    ///
    /// # Errors
    /// It is neither.
    ///
    /// ```
    /// use kolumn_broker::SqlSettings;
    ///
    /// assert_eq!(SqlSettings::parse_listen("none"), Ok(None));
    /// assert_eq!(SqlSettings::parse_listen("127.0.0.1:0"), Ok(Some(([127, 0, 0, 1], 0).into())));
    /// assert!(SqlSettings::parse_listen("8815").is_err());
    /// ```
    pub fn parse_listen(text: &str) -> Result<Option<SocketAddr>, &'static str> {
        if text == "none" {
            Ok(None)
        } else {
            text.parse().map(Some).map_err(|_| "must be `address:port` or `none`")
        }
    }

    /// Checks what types cannot say. `taken` are the addresses of the broker.
    pub(super) fn check(&self, taken: &[SocketAddr]) -> Result<(), SettingsError> {
        let check = |good: bool, key: &'static str, rule: &'static str| {
            if good { Ok(()) } else { Err(SettingsError::invalid(key, rule)) }
        };
        let is_fixed = |address: &SocketAddr| address.port() != 0;
        let is_private =
            |address: SocketAddr| self.open_to_others || address.ip().to_canonical().is_loopback();
        let private = "others can reach it, who need no password: `sql.open_to_others = true` allows that";
        let own = "must not be one of `listen`";
        let other = self.listen.filter(is_fixed);
        let twice = other.is_some() && other == self.postgres_listen;
        check(self.listen.is_none_or(is_private), "sql.listen", private)?;
        check(self.postgres_listen.is_none_or(is_private), "sql.postgres_listen", private)?;
        let is_free =
            |listen: Option<SocketAddr>| listen.filter(is_fixed).is_none_or(|own| !taken.contains(&own));
        check(is_free(self.listen), "sql.listen", own)?;
        check(is_free(self.postgres_listen), "sql.postgres_listen", own)?;
        check(!twice, "sql.postgres_listen", "must not be `sql.listen`")?;
        check(self.memory_len_max >= 8 << 20, "sql.memory_len_max", "must be at least 8388608")?;
        check(self.statement_timeout_ms >= 1, "sql.statement_timeout_ms", "must be at least 1")?;
        check(
            (1..=STATEMENTS_MAX).contains(&self.statements_max),
            "sql.statements_max",
            "must be from 1 to 100000",
        )
    }
}

fn address_or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(input)?;
    SqlSettings::parse_listen(&text).map_err(de::Error::custom)
}

/// Each of them has some memory of its own.
const STATEMENTS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[track_caller]
    fn refused(text: &str, message: &str) {
        let settings = Settings::from_toml(text).expect("readable");
        assert_eq!(settings.validate().unwrap_err().to_string(), message);
    }

    #[test]
    fn values_that_cannot_work_are_refused_with_their_key() {
        let rule = "others can reach it, who need no password: `sql.open_to_others = true` allows that";
        refused("sql.listen = '0.0.0.0:8815'", &format!("`sql.listen`: {rule}"));
        refused("sql.listen = '[::ffff:10.0.0.1]:8815'", &format!("`sql.listen`: {rule}"));
        refused("sql.postgres_listen = '[::]:5432'", &format!("`sql.postgres_listen`: {rule}"));
        refused("sql.listen = '127.0.0.1:9092'", "`sql.listen`: must not be one of `listen`");
        refused(
            "sql.postgres_listen = '127.0.0.1:9092'",
            "`sql.postgres_listen`: must not be one of `listen`",
        );
        refused("sql.postgres_listen = '127.0.0.1:8815'", "`sql.postgres_listen`: must not be `sql.listen`");
        refused("sql.memory_len_max = 8388607", "`sql.memory_len_max`: must be at least 8388608");
        refused("sql.statement_timeout_ms = 0", "`sql.statement_timeout_ms`: must be at least 1");
        refused("sql.statements_max = 0", "`sql.statements_max`: must be from 1 to 100000");
        refused("sql.statements_max = 100001", "`sql.statements_max`: must be from 1 to 100000");
    }

    #[test]
    fn addresses_may_be_none_chosen_by_the_system_or_open_when_that_is_said() {
        let read = |text: &str| {
            let settings = Settings::from_toml(text).expect("readable");
            settings.validate().expect("valid");
            (settings.sql.listen, settings.sql.postgres_listen)
        };
        assert_eq!(read("sql.listen = 'none'"), (None, None));
        let chosen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let both =
            "listen = ['127.0.0.1:0']\nsql.listen = '127.0.0.1:0'\nsql.postgres_listen = '127.0.0.1:0'";
        assert_eq!(read(both), (chosen, chosen));
        let open = "sql.listen = '0.0.0.0:8815'\nsql.open_to_others = true";
        assert_eq!(read(open), (Some(SocketAddr::from(([0, 0, 0, 0], 8815))), None));
        assert_eq!(read("sql.listen = '[::1]:8815'").0, Some("[::1]:8815".parse().expect("an address")));
        let error = Settings::from_toml("sql.listen = 'nowhere'").unwrap_err();
        assert_eq!(error.to_string(), "line 1, column 14: must be `address:port` or `none`");
    }
}
