//! Days since 1970 as year, month and day, for every day that 64 bits of milliseconds can name.

/// Year, month and day of the Gregorian calendar; the year 0 is 1 BC.
pub(super) const fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the day that comes and goes is the last one; an era has 400 years.
    let days = days + DAYS_TO_1970;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

const ERA_DAYS: i64 = 146_097;
/// From 1 March of the year 0.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_one_another() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(-719_528), (0, 1, 1));
        let mut last = civil(-800_000);
        for day in -799_999..800_000 {
            let next = civil(day);
            assert!(next > last && next.2 >= 1 && next.2 <= 31, "{last:?} {next:?}");
            assert!(next.2 == last.2 + 1 || (next.2 == 1 && last.2 >= 28), "{last:?} {next:?}");
            last = next;
        }
    }
}
