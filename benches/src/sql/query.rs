//! The statements: one text for all sides, so that nobody is asked something easier.

use serde::Serialize;

use super::rows::{FIRST_TIMESTAMP, STEP_MS, USERS};

/// What is asked, in the order in which it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Query {
    Count,
    MinMax,
    OneOffset,
    OffsetRange,
    TimeRange,
    OneKey,
    LastHundred,
    GroupByType,
    GroupByUser,
    FullScan,
    Like,
}

impl Query {
    pub(super) const ALL: [Self; 11] = [
        Self::Count,
        Self::MinMax,
        Self::OneOffset,
        Self::OffsetRange,
        Self::TimeRange,
        Self::OneKey,
        Self::LastHundred,
        Self::GroupByType,
        Self::GroupByUser,
        Self::FullScan,
        Self::Like,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Count => "count(*)",
            Self::MinMax => "min and max offset",
            Self::OneOffset => "one offset",
            Self::OffsetRange => "offset range, 1 %",
            Self::TimeRange => "time range, 1 %",
            Self::OneKey => "one key",
            Self::LastHundred => "last 100",
            Self::GroupByType => "group by 20 types",
            Self::GroupByUser => "group by 100,000 users",
            Self::FullScan => "sum of the values' lengths",
            Self::Like => "LIKE on the value",
        }
    }

    /// The statement over so many rows; `round` moves what is looked for.
    pub(super) fn text(self, rows: u64, round: u32) -> String {
        let width = (rows / 100).max(1);
        let first = (rows / 3 + u64::from(round) * (width * 2 + 1)) % (rows - width + 1);
        match self {
            Self::Count => "SELECT count(*) FROM events".into(),
            Self::MinMax => r#"SELECT min("offset"), max("offset") FROM events"#.into(),
            Self::OneOffset => format!(r#"SELECT "offset", key, value FROM events WHERE "offset" = {first}"#),
            Self::OffsetRange => format!(
                r#"SELECT count(*), {LENGTHS} FROM events WHERE "offset" BETWEEN {first} AND {}"#,
                first + width - 1,
            ),
            Self::TimeRange => format!(
                r#"SELECT count(*), {LENGTHS} FROM events WHERE "timestamp" >= {} AND "timestamp" < {}"#,
                moment(first),
                moment(first + width),
            ),
            Self::OneKey => format!(
                r#"SELECT count(*), min("offset"), max("offset") FROM events WHERE key = 'user-{:06}'"#,
                first % USERS,
            ),
            Self::LastHundred => {
                r#"SELECT "offset", key, value FROM events ORDER BY "offset" DESC LIMIT 100"#.into()
            }
            Self::GroupByType => {
                "SELECT substr(CAST(value AS VARCHAR), 10, 7) AS kind, count(*) AS n FROM events GROUP BY 1 ORDER BY 1"
                    .into()
            }
            Self::GroupByUser => {
                r#"SELECT key, count(*) AS n, max("offset") AS newest FROM events GROUP BY key ORDER BY n DESC, key LIMIT 10"#
                    .into()
            }
            Self::FullScan => format!("SELECT {LENGTHS} FROM events"),
            Self::Like => r#"SELECT count(*) FROM events WHERE value LIKE '%"amount":99%'"#.into(),
        }
    }

    /// Whether it is to be answered from what is known without decoding rows, at once.
    pub(super) const fn is_at_once(self) -> bool {
        matches!(self, Self::Count | Self::MinMax | Self::OneOffset | Self::LastHundred)
    }

    /// Whether it needs every row, and so is measured against reading them.
    pub(super) const fn is_whole(self) -> bool {
        matches!(self, Self::GroupByType | Self::GroupByUser | Self::FullScan)
    }
}

/// The time at which a row is due, as a literal of SQL.
fn moment(offset: u64) -> String {
    let ms = FIRST_TIMESTAMP + i64::try_from(offset).unwrap_or_default() * STEP_MS;
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date(days);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, ms) = (of_day / 1000 % 60, of_day % 1000);
    format!("TIMESTAMP '{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{ms:03}'")
}

/// Year, month and day of a day counted from 1970, in the Gregorian calendar whose years begin in March.
const fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

const LENGTHS: &str = "sum(length(CAST(value AS VARCHAR)))";
const DAY_MS: i64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(moment(0), "TIMESTAMP '2026-09-21 14:13:20.000'");
        assert_eq!(moment(8_640_000 + 101), "TIMESTAMP '2026-09-22 14:13:21.010'");
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_453), (2025, 12, 31));
    }

    #[test]
    fn what_is_looked_for_moves_from_round_to_round_and_stays_among_the_rows() {
        for query in [Query::OneOffset, Query::OffsetRange, Query::TimeRange, Query::OneKey] {
            assert_ne!(query.text(10_000, 1), query.text(10_000, 2), "{query:?}");
        }
        for round in 0..100 {
            let text = Query::OffsetRange.text(1000, round);
            let last: u64 = text.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(last < 1000, "{text}");
        }
    }
}
