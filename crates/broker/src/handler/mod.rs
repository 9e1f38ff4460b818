//! What each request does: one module per kind, named after it.
//!
//! A handler decodes its request, has its effects and gives the answer. Effects happen in the order of requests; see
//! [`crate::dispatch::Started`] for how a handler that has to wait keeps that order.

pub(crate) mod alter_configs;
pub(crate) mod api_versions;
mod broker_configs;
mod config_changes;
mod config_resource;
mod config_rows;
pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_groups;
pub(crate) mod delete_records;
pub(crate) mod delete_topics;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_groups;
pub(crate) mod describe_log_dirs;
pub(crate) mod describe_topic_partitions;
pub(crate) mod elect_leaders;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod heartbeat;
pub(crate) mod incremental_alter_configs;
pub(crate) mod init_producer_id;
pub(crate) mod join_group;
pub(crate) mod leave_group;
pub(crate) mod list_groups;
pub(crate) mod list_offsets;
pub(crate) mod list_partition_reassignments;
pub(crate) mod metadata;
pub(crate) mod offset_commit;
pub(crate) mod offset_delete;
pub(crate) mod offset_fetch;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;
mod refusal;
mod room;
pub(crate) mod sync_group;

/// Operations on a topic that a client may do, as bits, where nobody is refused: read, write, create, delete, alter,
/// describe, describe configs, alter configs.
const TOPIC_OPERATIONS: i32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
/// Likewise on the cluster: create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
const CLUSTER_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
/// What stands for operations that were not asked for.
const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
