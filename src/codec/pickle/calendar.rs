//! Days since 1970 in the proleptic Gregorian calendar, as Python counts them.

/// Days from the first of March of the year 0 to 1970: years begin in March here, so that the leap day is their last.
const EPOCH: i64 = 719_468;

/// Days in 400 years.
const ERA: i64 = 146_097;

/// Year, month and day of a number of days since 1970.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970 of a date of Python; `None` where there is no such day, or the year has not one to four digits.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let from_march = year - i64::from(month <= 2);
    let (era, year_of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH;
    (date(days) == (year, month, day)).then_some(days)
}
