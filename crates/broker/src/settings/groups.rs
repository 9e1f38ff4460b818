//! The settings of consumer groups.

use std::time::Duration;

use serde::Deserialize;

use super::SettingsError;
use crate::coordinator::Limits;
use crate::group::GroupLimits;

/// Consumer groups and what they commit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct GroupSettings {
    /// How long an empty group waits for further members before its first generation
    /// (`group.initial.rebalance.delay.ms`). Default 3 000.
    pub initial_rebalance_delay_ms: u64,
    /// Shortest session timeout that a member may ask for. Default 6 000.
    pub session_timeout_min_ms: u64,
    /// Longest session timeout that a member may ask for. Default 1 800 000, half an hour.
    pub session_timeout_max_ms: u64,
    /// Members of one group, at most. Default 10 000.
    pub members_max: usize,
    /// Groups, at most. Default 100 000.
    pub groups_max: usize,
    /// How long the committed offsets of a group without members are kept. Default 10 080, a week.
    pub offsets_retention_minutes: u64,
    /// Bytes of metadata in one committed offset, at most. Default 4 096.
    pub offset_metadata_len_max: usize,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 1_800_000,
            members_max: 10_000,
            groups_max: 100_000,
            offsets_retention_minutes: 10_080,
            offset_metadata_len_max: 4_096,
        }
    }
}

impl GroupSettings {
    /// Checks what types cannot say.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let check = |good: bool, key: &'static str, rule: &'static str| {
            if good { Ok(()) } else { Err(SettingsError::invalid(key, rule)) }
        };
        check(
            self.initial_rebalance_delay_ms <= 3_600_000,
            "groups.initial_rebalance_delay_ms",
            "must be at most 3600000",
        )?;
        check(self.session_timeout_min_ms >= 1, "groups.session_timeout_min_ms", "must be at least 1")?;
        check(
            (self.session_timeout_min_ms..=86_400_000).contains(&self.session_timeout_max_ms),
            "groups.session_timeout_max_ms",
            "must be from `groups.session_timeout_min_ms` to 86400000",
        )?;
        check(self.members_max >= 1, "groups.members_max", "must be at least 1")?;
        check(self.groups_max >= 1, "groups.groups_max", "must be at least 1")?;
        check(self.offsets_retention_minutes >= 1, "groups.offsets_retention_minutes", "must be at least 1")?;
        check(
            self.offset_metadata_len_max <= METADATA_LEN_MAX,
            "groups.offset_metadata_len_max",
            "must be at most 32767",
        )
    }

    /// What the coordinator of groups goes by.
    pub(crate) fn limits(&self) -> Limits {
        let group = GroupLimits {
            initial_rebalance_delay: Duration::from_millis(self.initial_rebalance_delay_ms),
            session_timeout_min: Duration::from_millis(self.session_timeout_min_ms),
            session_timeout_max: Duration::from_millis(self.session_timeout_max_ms),
            members_max: self.members_max,
            len_max: GROUP_LEN_MAX,
            ..GroupLimits::default()
        };
        Limits {
            group,
            groups_max: self.groups_max,
            cost_max: COST_MAX,
            offsets_retention: Duration::from_secs(self.offsets_retention_minutes.saturating_mul(60)),
        }
    }
}

/// As long as a text of the protocol can be.
const METADATA_LEN_MAX: usize = 32_767;
/// Bytes that the members of one group may send and be assigned: what an entry of the log has room for, with some more
/// for each member.
const GROUP_LEN_MAX: usize = 12 << 20;
/// Bytes of memory that the members of all groups may take: as much as the store keeps of them.
const COST_MAX: usize = 256 << 20;

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
        let rule = "`groups.initial_rebalance_delay_ms`: must be at most 3600000";
        refused("groups.initial_rebalance_delay_ms = 3600001", rule);
        let rule = "`groups.session_timeout_min_ms`: must be at least 1";
        refused("groups.session_timeout_min_ms = 0", rule);
        let rule =
            "`groups.session_timeout_max_ms`: must be from `groups.session_timeout_min_ms` to 86400000";
        refused("groups.session_timeout_max_ms = 5999", rule);
        refused("groups.session_timeout_max_ms = 86400001", rule);
        refused("groups.members_max = 0", "`groups.members_max`: must be at least 1");
        refused("groups.groups_max = 0", "`groups.groups_max`: must be at least 1");
        let rule = "`groups.offsets_retention_minutes`: must be at least 1";
        refused("groups.offsets_retention_minutes = 0", rule);
        let rule = "`groups.offset_metadata_len_max`: must be at most 32767";
        refused("groups.offset_metadata_len_max = 32768", rule);
    }

    #[test]
    fn a_full_group_fits_into_one_entry_of_the_log() {
        let settings = GroupSettings::default();
        let (limits, store) = (settings.limits(), kolumn_topic_store::Settings::default());
        let most = limits.group.len_max + limits.group.members_max * 256;
        assert!(most < store.batch_len_max);
    }
}
