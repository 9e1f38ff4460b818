//! The tables of `pg_catalog` and their columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::super::types::oid;

/// Whether there is a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    columns(name).is_some()
}

/// Whether a table always is without rows, because we have nothing of its kind.
pub(super) fn is_empty(name: &str) -> bool {
    EMPTY.iter().any(|(table, _)| *table == name)
}

/// All tables with their columns.
pub(super) fn tables() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILLED.iter().chain(EMPTY).copied()
}

/// The schema of a table.
pub(super) fn schema(name: &str) -> Option<SchemaRef> {
    let fields: Vec<_> =
        fields(columns(name)?).map(|(name, kind)| Field::new(name, data_type(kind), true)).collect();
    Some(Arc::new(Schema::new(fields)))
}

/// The names and types of columns.
pub(super) fn fields(columns: &'static str) -> impl Iterator<Item = (&'static str, u8)> {
    columns.split(' ').filter_map(|column| {
        let (name, kind) = column.split_once(':')?;
        Some((name, kind.bytes().next()?))
    })
}

/// The number of a column's type.
pub(super) const fn oid_of(kind: u8) -> u32 {
    match kind {
        b'o' => oid::OID,
        b'b' => oid::BOOL,
        b's' => oid::INT2,
        b'i' => oid::INT4,
        b'l' => oid::INT8,
        b'f' => oid::FLOAT4,
        b'a' => oid::TEXT_ARRAY,
        b'p' => oid::TIMESTAMPTZ,
        _ => oid::TEXT,
    }
}

fn data_type(kind: u8) -> DataType {
    super::super::types::data_type_of(oid_of(kind))
}

fn columns(name: &str) -> Option<&'static str> {
    tables().find(|(table, _)| *table == name).map(|(_, columns)| columns)
}

// A column is `name:type`: o is oid, t text, b bool, s, i and l are int2, int4 and int8, f is float4, a is text[], p is
// timestamptz. What we never have a value of is text.

const FILLED: &[(&str, &str)] = &[
    ("pg_am", "oid:o amname:t amhandler:o amtype:t"),
    (
        "pg_attribute",
        "attrelid:o attname:t atttypid:o attstattarget:i attlen:s attnum:s attndims:i attcacheoff:i atttypmod:i attbyval:b \
         attalign:t attstorage:t attcompression:t attnotnull:b atthasdef:b atthasmissing:b attidentity:t attgenerated:t \
         attisdropped:b attislocal:b attinhcount:i attcollation:o attacl:a attoptions:a attfdwoptions:a attmissingval:t",
    ),
    (
        "pg_authid",
        "oid:o rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b \
         rolbypassrls:b rolconnlimit:i rolpassword:t rolvaliduntil:p",
    ),
    (
        "pg_class",
        "oid:o relname:t relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o relpages:i \
         reltuples:f relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence:t relkind:t relnatts:s \
         relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b \
         relispopulated:b relreplident:t relispartition:b relrewrite:o relfrozenxid:o relminmxid:o relacl:a reloptions:a \
         relpartbound:t relhasoids:b",
    ),
    (
        "pg_database",
        "oid:o datname:t datdba:o encoding:i datlocprovider:t datistemplate:b datallowconn:b datconnlimit:i \
         datfrozenxid:o datminmxid:o dattablespace:o datcollate:t datctype:t daticulocale:t datcollversion:t \
         datlastsysoid:o datacl:a",
    ),
    ("pg_namespace", "oid:o nspname:t nspowner:o nspacl:a"),
    (
        "pg_roles",
        "rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b rolconnlimit:i \
         rolpassword:t rolvaliduntil:p rolbypassrls:b rolconfig:a oid:o",
    ),
    (
        "pg_settings",
        "name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t source:t min_val:t max_val:t \
         enumvals:a boot_val:t reset_val:t sourcefile:t sourceline:i pending_restart:b",
    ),
    (
        "pg_tables",
        "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b rowsecurity:b",
    ),
    ("pg_tablespace", "oid:o spcname:t spcowner:o spcacl:a spcoptions:a"),
    (
        "pg_type",
        "oid:o typname:t typnamespace:o typowner:o typlen:s typbyval:b typtype:t typcategory:t typispreferred:b \
         typisdefined:b typdelim:t typrelid:o typsubscript:o typelem:o typarray:o typinput:o typoutput:o typreceive:o \
         typsend:o typmodin:o typmodout:o typanalyze:o typalign:t typstorage:t typnotnull:b typbasetype:o typtypmod:i \
         typndims:i typcollation:o typdefaultbin:t typdefault:t typacl:a",
    ),
    (
        "pg_user",
        "usename:t usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t valuntil:p useconfig:a",
    ),
];

const EMPTY: &[(&str, &str)] = &[
    ("pg_aggregate", "aggfnoid:o aggkind:t aggnumdirectargs:s"),
    (
        "pg_amop",
        "oid:o amopfamily:o amoplefttype:o amoprighttype:o amopstrategy:s amoppurpose:t amopopr:o amopmethod:o",
    ),
    ("pg_amproc", "oid:o amprocfamily:o amproclefttype:o amprocrighttype:o amprocnum:s amproc:o"),
    ("pg_attrdef", "oid:o adrelid:o adnum:s adbin:t"),
    ("pg_auth_members", "roleid:o member:o grantor:o admin_option:b"),
    ("pg_available_extensions", "name:t default_version:t installed_version:t comment:t"),
    ("pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext:t castmethod:t"),
    (
        "pg_collation",
        "oid:o collname:t collnamespace:o collowner:o collprovider:t collisdeterministic:b collencoding:i collcollate:t \
         collctype:t colliculocale:t collversion:t",
    ),
    (
        "pg_constraint",
        "oid:o conname:t connamespace:o contype:t condeferrable:b condeferred:b convalidated:b conrelid:o contypid:o \
         conindid:o conparentid:o confrelid:o confupdtype:t confdeltype:t confmatchtype:t conislocal:b coninhcount:i \
         connoinherit:b conkey:a confkey:a conbin:t",
    ),
    (
        "pg_conversion",
        "oid:o conname:t connamespace:o conowner:o conforencoding:i contoencoding:i conproc:o condefault:b",
    ),
    ("pg_cursors", "name:t statement:t is_holdable:b is_binary:b is_scrollable:b creation_time:p"),
    ("pg_db_role_setting", "setdatabase:o setrole:o setconfig:a"),
    ("pg_default_acl", "oid:o defaclrole:o defaclnamespace:o defaclobjtype:t defaclacl:a"),
    ("pg_depend", "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:t"),
    ("pg_description", "objoid:o classoid:o objsubid:i description:t"),
    ("pg_enum", "oid:o enumtypid:o enumsortorder:f enumlabel:t"),
    ("pg_event_trigger", "oid:o evtname:t evtevent:t evtowner:o evtfoid:o evtenabled:t evttags:a"),
    (
        "pg_extension",
        "oid:o extname:t extowner:o extnamespace:o extrelocatable:b extversion:t extconfig:a extcondition:a",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid:o fdwname:t fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:a fdwoptions:a",
    ),
    ("pg_foreign_server", "oid:o srvname:t srvowner:o srvfdw:o srvtype:t srvversion:t srvacl:a srvoptions:a"),
    ("pg_foreign_table", "ftrelid:o ftserver:o ftoptions:a"),
    ("pg_get_keywords", "word:t catcode:t barelabel:b catdesc:t baredesc:t"),
    ("pg_group", "groname:t grosysid:o grolist:a"),
    (
        "pg_index",
        "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b \
         indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b \
         indisreplident:b indkey:a indcollation:a indclass:a indoption:a indexprs:t indpred:t",
    ),
    ("pg_indexes", "schemaname:t tablename:t indexname:t tablespace:t indexdef:t"),
    ("pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    ("pg_init_privs", "objoid:o classoid:o objsubid:i privtype:t initprivs:a"),
    (
        "pg_language",
        "oid:o lanname:t lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o lanacl:a",
    ),
    ("pg_largeobject_metadata", "oid:o lomowner:o lomacl:a"),
    ("pg_locks", "locktype:t database:o relation:o pid:i mode:t granted:b"),
    (
        "pg_matviews",
        "schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b definition:t",
    ),
    (
        "pg_opclass",
        "oid:o opcmethod:o opcname:t opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b opckeytype:o",
    ),
    (
        "pg_operator",
        "oid:o oprname:t oprnamespace:o oprowner:o oprkind:t oprcanmerge:b oprcanhash:b oprleft:o oprright:o oprresult:o \
         oprcom:o oprnegate:o oprcode:o oprrest:o oprjoin:o",
    ),
    ("pg_opfamily", "oid:o opfmethod:o opfname:t opfnamespace:o opfowner:o"),
    ("pg_parameter_acl", "oid:o parname:t paracl:a"),
    (
        "pg_partitioned_table",
        "partrelid:o partstrat:t partnatts:s partdefid:o partattrs:a partclass:a partexprs:t",
    ),
    ("pg_policies", "schemaname:t tablename:t policyname:t permissive:t roles:a cmd:t qual:t with_check:t"),
    ("pg_policy", "oid:o polname:t polrelid:o polcmd:t polpermissive:b polroles:a polqual:t polwithcheck:t"),
    ("pg_prepared_statements", "name:t statement:t prepare_time:p parameter_types:a from_sql:b"),
    ("pg_prepared_xacts", "transaction:o gid:t prepared:p owner:t database:t"),
    (
        "pg_proc",
        "oid:o proname:t pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o prosupport:o prokind:t \
         prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:t proparallel:t pronargs:s pronargdefaults:s \
         prorettype:o proargtypes:a proallargtypes:a proargmodes:a proargnames:a proargdefaults:t protrftypes:a prosrc:t \
         probin:t prosqlbody:t proconfig:a proacl:a",
    ),
    (
        "pg_publication",
        "oid:o pubname:t pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b",
    ),
    ("pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    ("pg_publication_rel", "oid:o prpubid:o prrelid:o prqual:t prattrs:a"),
    ("pg_publication_tables", "pubname:t schemaname:t tablename:t attnames:a rowfilter:t"),
    (
        "pg_range",
        "rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical:o rngsubdiff:o",
    ),
    ("pg_replication_slots", "slot_name:t plugin:t slot_type:t database:t active:b"),
    ("pg_rewrite", "oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b ev_qual:t ev_action:t"),
    ("pg_rules", "schemaname:t tablename:t rulename:t definition:t"),
    ("pg_seclabel", "objoid:o classoid:o objsubid:i provider:t label:t"),
    (
        "pg_sequence",
        "seqrelid:o seqtypid:o seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:l seqcycle:b",
    ),
    (
        "pg_sequences",
        "schemaname:t sequencename:t sequenceowner:t data_type:t start_value:l min_value:l max_value:l increment_by:l \
         cycle:b cache_size:l last_value:l",
    ),
    ("pg_shdepend", "dbid:o classid:o objid:o objsubid:i refclassid:o refobjid:o deptype:t"),
    ("pg_shdescription", "objoid:o classoid:o description:t"),
    ("pg_shseclabel", "objoid:o classoid:o provider:t label:t"),
    (
        "pg_stat_activity",
        "datid:o datname:t pid:i usesysid:o usename:t application_name:t client_addr:t backend_start:p query_start:p \
         state:t query:t backend_type:t",
    ),
    ("pg_stat_user_tables", "relid:o schemaname:t relname:t seq_scan:l n_live_tup:l n_dead_tup:l"),
    (
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxstattarget:i stxkeys:a stxkind:a stxexprs:t",
    ),
    ("pg_stats", "schemaname:t tablename:t attname:t inherited:b null_frac:f avg_width:i n_distinct:f"),
    (
        "pg_subscription",
        "oid:o subdbid:o subname:t subowner:o subenabled:b subconninfo:t subslotname:t subpublications:a",
    ),
    ("pg_subscription_rel", "srsubid:o srrelid:o srsubstate:t"),
    ("pg_timezone_names", "name:t abbrev:t utc_offset:t is_dst:b"),
    ("pg_transform", "oid:o trftype:o trflang:o trffromsql:o trftosql:o"),
    (
        "pg_trigger",
        "oid:o tgrelid:o tgparentid:o tgname:t tgfoid:o tgtype:s tgenabled:t tgisinternal:b tgconstrrelid:o \
         tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:a tgargs:t tgqual:t \
         tgoldtable:t tgnewtable:t",
    ),
    ("pg_ts_config", "oid:o cfgname:t cfgnamespace:o cfgowner:o cfgparser:o"),
    ("pg_ts_dict", "oid:o dictname:t dictnamespace:o dictowner:o dicttemplate:o dictinitoption:t"),
    (
        "pg_ts_parser",
        "oid:o prsname:t prsnamespace:o prsstart:o prstoken:o prsend:o prsheadline:o prslextype:o",
    ),
    ("pg_ts_template", "oid:o tmplname:t tmplnamespace:o tmplinit:o tmpllexize:o"),
    ("pg_user_mapping", "oid:o umuser:o umserver:o umoptions:a"),
    ("pg_user_mappings", "umid:o srvid:o srvname:t umuser:o usename:t umoptions:a"),
    ("pg_views", "schemaname:t viewname:t viewowner:t definition:t"),
];
