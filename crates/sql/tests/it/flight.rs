//! Behaviour of: the Flight SQL server, asked by the client of arrow-flight.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, SqlInfo,
};
use arrow_flight::{Action, FlightInfo, IpcMessage};
use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type, Schema};
use futures::TryStreamExt;
use kolumn_sql::flight::{FlightServer, FlightSettings};
use kolumn_sql::{Builder, Settings};
use tokio::task::block_in_place;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::support::{Fixture, Row};

type Client = FlightSqlServiceClient<Channel>;

/// A server over a topic `orders` with the offsets 0, 1 and 2.
pub(crate) struct Served {
    pub(crate) fixture: Fixture,
    pub(crate) server: FlightServer,
}

impl Served {
    pub(crate) async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    async fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let fixture = block_in_place(|| {
            let fixture = Fixture::new();
            let orders = fixture.topic("orders", 1);
            let rows = [("a", "one", 1_000), ("b", "two", 2_000), ("c", "three", 3_000)];
            fixture.append(&orders, 0, &rows.map(|(key, value, timestamp)| Row::text(timestamp, key, value)));
            fixture
        });
        let engine = fixture.engine(|builder| change(builder.catalog_alias("vast")));
        let server = FlightServer::start(engine, on_free_port()).await.expect("a free port");
        Self { fixture, server }
    }

    async fn client(&self) -> Client {
        let endpoint =
            Endpoint::from_shared(format!("http://{}", self.server.local_addr())).expect("an address");
        Client::new(endpoint.connect().await.expect("connects"))
    }
}

fn on_free_port() -> FlightSettings {
    FlightSettings { listen: "127.0.0.1:0".parse().expect("an address"), ..FlightSettings::default() }
}

async fn redeem(client: &mut Client, info: &FlightInfo) -> Result<FlightRecordBatchStream, FlightError> {
    let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
    client.do_get(ticket).await
}

/// The rows of an answer as one batch, whose columns are those that were announced.
async fn collect(client: &mut Client, info: FlightInfo) -> Result<RecordBatch, FlightError> {
    let stream = redeem(client, &info).await?;
    let announced = Arc::new(info.try_decode_schema()?);
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    for batch in &batches {
        assert_eq!(batch.schema(), announced);
    }
    Ok(datafusion::arrow::compute::concat_batches(&announced, &batches)?)
}

async fn query(client: &mut Client, text: &str) -> Result<RecordBatch, FlightError> {
    let info = client.execute(text.to_owned(), None).await?;
    collect(client, info).await
}

fn code(error: FlightError) -> (Code, String) {
    match error {
        FlightError::Tonic(status) => (status.code(), status.message().to_owned()),
        other => panic!("no status: {other}"),
    }
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let column = batch.column_by_name(column).expect("the column").as_string::<i32>();
    column.iter().map(|text| text.expect("a text").to_owned()).collect()
}

fn offsets(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("offset").expect("the column").as_primitive::<Int64Type>().values().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_answered_with_the_columns_that_were_announced() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let rows = query(&mut client, r#"SELECT * FROM orders ORDER BY "offset""#).await.expect("an answer");
    assert_eq!(offsets(&rows), [0, 1, 2]);
    assert_eq!(
        rows.column_by_name("partition").expect("it").as_primitive::<Int32Type>().values(),
        &[0, 0, 0]
    );
    let value = rows.column_by_name("value").expect("it").as_binary::<i32>();
    assert_eq!(value.value(2), b"three");
    for text in [
        r#"SELECT count(*), max("offset") + 1, avg("offset"), min(timestamp) FROM orders"#,
        "SELECT key, count(*) AS n FROM orders GROUP BY key ORDER BY n",
        r#"SELECT a.key, b.value FROM orders a LEFT JOIN orders b ON a."offset" = b."offset" + 1"#,
        "SHOW TABLES",
        "SHOW SCHEMAS",
        "DESCRIBE orders",
        "EXPLAIN SELECT * FROM orders",
        "SELECT 1 AS x, 'a' AS y, NULL AS z WHERE false",
    ] {
        query(&mut client, text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_sees_what_is_acknowledged_when_it_is_redeemed() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let info = client.execute("SELECT count(*) AS n FROM orders".into(), None).await.expect("an info");
    block_in_place(|| {
        let Fixture { store, view, .. } = &served.fixture;
        let orders = store.topic(view.id, "orders").expect("the topic");
        served.fixture.append(&orders, 0, &[Row::text(4_000, "d", "four")]);
    });
    let rows = collect(&mut client, info).await.expect("an answer");
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_become_the_types_that_every_client_knows() {
    let served = Served::new().await;
    let text = "SELECT arrow_cast('x', 'Utf8View') AS t, arrow_cast(key, 'BinaryView') AS b, \
                arrow_cast('y', 'Dictionary(Int32, Utf8)') AS d FROM orders";
    let rows = query(&mut served.client().await, text).await.expect("an answer");
    let types: Vec<DataType> = rows.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    assert_eq!(types, [DataType::Utf8, DataType::Binary, dictionary]);
    assert_eq!(rows.column(0).as_string::<i32>().value(2), "x");
    assert_eq!(rows.column(1).as_binary::<i32>().value(2), b"c");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_come_with_the_code_that_says_what_to_do() {
    let served = Served::new().await;
    let mut client = served.client().await;
    for (text, expect) in [
        ("SELEC 1", Code::InvalidArgument),
        ("SELECT * FROM nowhere", Code::NotFound),
        ("SELECT nothing FROM orders", Code::NotFound),
        ("INSERT INTO orders VALUES (1)", Code::PermissionDenied),
        ("DROP TABLE orders", Code::PermissionDenied),
        (r#"SELECT 1 / ("offset" - 2) FROM orders"#, Code::InvalidArgument),
    ] {
        let (code, message) = code(query(&mut client, text).await.expect_err(text));
        assert_eq!(code, expect, "{text}: {message}");
        assert!(!message.is_empty());
    }
    let long = format!("SELECT * FROM \"{}\"", "ä".repeat(20_000));
    let (_, message) = code(query(&mut client, &long).await.expect_err("no such table"));
    assert!(message.len() < 2_100, "{} bytes", message.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_the_same_name_are_answered() {
    let served = Served::new().await;
    let mut client = served.client().await;
    for text in
        ["SELECT key, key FROM orders", "SELECT a.key, b.key FROM orders a JOIN orders b ON a.key = b.key"]
    {
        let info = client.execute(text.into(), None).await.expect("an info");
        let told = info.clone().try_decode_schema().expect("a schema");
        let rows = collect(&mut client, info).await.expect("an answer");
        assert_eq!(told.fields(), rows.schema().fields(), "{text}");
        let names: Vec<_> = told.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!((names, rows.num_rows()), (vec!["key", "key"], 3), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_refused_and_settings_are_taken() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let refused = client.execute_update("DELETE FROM orders".into(), None).await.expect_err("read-only");
    assert_eq!(code(refused).0, Code::PermissionDenied);
    let refused = client.execute_update("SELECT 1".into(), None).await.expect_err("a query");
    assert_eq!(code(refused).0, Code::InvalidArgument);
    let changed = client.execute_update("SET TIME ZONE 'Europe/Berlin'".into(), None).await;
    assert_eq!(changed.expect("a setting"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_holds_for_its_connection_only() {
    let served = Served::new().await;
    let (mut one, mut other) = (served.client().await, served.client().await);
    query(&mut one, "SET TIME ZONE 'Asia/Tokyo'").await.expect("a setting");
    let text = "SELECT to_timestamp(0)::timestamptz::varchar AS t";
    let shown = async |client: &mut Client| texts(&query(client, text).await.expect("an answer"), "t");
    let (tokyo, utc) = (shown(&mut one).await, shown(&mut other).await);
    assert_ne!(tokyo, utc);
    let close = Action { r#type: "CloseSession".into(), body: Vec::new().into() };
    let closed: Vec<_> = one.do_action(close).await.expect("closes").try_collect().await.expect("a result");
    assert_eq!(closed[0].body.as_ref(), [8, 1]);
    assert_eq!(shown(&mut one).await, utc);
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_take_one_row_of_parameters_at_a_time() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let text = r#"SELECT "offset" FROM orders WHERE "offset" >= $1 ORDER BY "offset""#;
    let mut statement = client.prepare(text.into(), None).await.expect("a statement");
    assert_eq!(statement.parameter_schema().expect("a schema").field(0).name(), "$1");
    assert_eq!(statement.dataset_schema().expect("a schema").field(0).name(), "offset");
    let one = |values: Vec<i64>| {
        RecordBatch::try_from_iter([("0", Arc::new(Int64Array::from(values)) as _)]).expect("a batch")
    };
    for (bound, expect) in [(1, vec![1, 2]), (2, vec![2])] {
        statement.set_parameters(one(vec![bound])).expect("parameters");
        let info = statement.execute().await.expect("an info");
        assert_eq!(offsets(&collect(&mut client, info).await.expect("an answer")), expect);
    }
    statement.set_parameters(one(vec![1, 2])).expect("parameters");
    assert_eq!(code(statement.execute().await.expect_err("two rows")).0, Code::InvalidArgument);
    statement.close().await.expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_belong_to_their_connection_and_are_few() {
    let served = Served::new().await;
    let (mut client, mut other) = (served.client().await, served.client().await);
    let mut statement = client.prepare("SELECT 1 AS x".into(), None).await.expect("a statement");
    let info = statement.execute().await.expect("an info");
    assert_eq!(collect(&mut client, info.clone()).await.expect("an answer").num_rows(), 1);
    assert_eq!(code(redeem(&mut other, &info).await.expect_err("another's")).0, Code::NotFound);
    statement.close().await.expect("closes");
    assert_eq!(code(redeem(&mut client, &info).await.expect_err("closed")).0, Code::NotFound);

    let mut held = Vec::new();
    let refused = loop {
        match client.prepare("SELECT 1".into(), None).await {
            Ok(statement) => held.push(statement),
            Err(error) => break code(error).0,
        }
    };
    assert_eq!((held.len(), refused), (64, Code::ResourceExhausted));
    held.pop().expect("one").close().await.expect("closes");
    client.prepare("SELECT 1".into(), None).await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_schemas_and_tables_are_listed() {
    let served = Served::new().await;
    block_in_place(|| served.fixture.topic("other.topic", 1));
    let mut client = served.client().await;
    let info = client.get_catalogs().await.expect("an info");
    let catalogs = collect(&mut client, info).await.expect("catalogs");
    // the other names are the same catalog
    assert_eq!(texts(&catalogs, "catalog_name"), ["kolumn"]);

    let command =
        CommandGetDbSchemas { catalog: Some("vast".into()), db_schema_filter_pattern: Some("kafka%".into()) };
    let info = client.get_db_schemas(command).await.expect("an info");
    let schemas = collect(&mut client, info).await.expect("schemas");
    assert_eq!(texts(&schemas, "db_schema_name"), ["kafka/kafka_topics"]);

    let everywhere =
        CommandGetTables { catalog: None, table_types: vec!["TABLE".into()], ..Default::default() };
    for (catalog, expect) in [(None, "kolumn"), (Some("vast"), "vast")] {
        let command = CommandGetTables { catalog: catalog.map(str::to_owned), ..everywhere.clone() };
        let info = client.get_tables(command).await.expect("an info");
        let tables = collect(&mut client, info).await.expect("tables");
        assert_eq!(texts(&tables, "catalog_name"), [expect; 2], "{catalog:?}");
    }
    let nowhere = CommandGetTables { catalog: Some("nowhere".into()), ..everywhere };
    let info = client.get_tables(nowhere).await.expect("an info");
    assert_eq!(collect(&mut client, info).await.expect("tables").num_rows(), 0);

    let mut command = CommandGetTables {
        catalog: Some("kolumn".into()),
        db_schema_filter_pattern: None,
        table_name_filter_pattern: None,
        table_types: vec!["TABLE".into()],
        include_schema: false,
    };
    let info = client.get_tables(command.clone()).await.expect("an info");
    let tables = collect(&mut client, info).await.expect("tables");
    assert_eq!(texts(&tables, "table_name"), ["orders", "other.topic"]);

    command.table_name_filter_pattern = Some("other%".into());
    command.include_schema = true;
    let info = client.get_tables(command).await.expect("an info");
    let tables = collect(&mut client, info).await.expect("tables");
    assert_eq!(texts(&tables, "table_name"), ["other.topic"]);
    let encoded = tables.column_by_name("table_schema").expect("it").as_binary::<i32>().value(0);
    let columns = Schema::try_from(IpcMessage(encoded.to_vec().into())).expect("a schema");
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["partition", "offset", "timestamp", "key", "value", "headers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_about_itself() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let wanted = vec![SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerReadOnly];
    let info = client.get_sql_info(wanted).await.expect("an info");
    assert_eq!(collect(&mut client, info).await.expect("facts").num_rows(), 2);
    let info = client.get_table_types().await.expect("an info");
    let kinds = collect(&mut client, info).await.expect("kinds");
    assert_eq!(texts(&kinds, "table_type"), ["SYSTEM TABLE", "TABLE", "VIEW"]);
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo::default()).await.expect("an info");
    let types = collect(&mut client, info).await.expect("types");
    assert!(texts(&types, "type_name").contains(&"timestamp".to_owned()));
    let info = client.get_primary_keys(CommandGetPrimaryKeys::default()).await.expect("an info");
    assert_eq!(collect(&mut client, info).await.expect("keys").num_rows(), 0);
    let token = client.handshake("anybody", "anything").await.expect("a token");
    assert_eq!(token.as_ref(), b"anonymous");
    assert_eq!(client.token().expect("a token"), "anonymous");
    let transaction = client.begin_transaction().await.expect("a transaction");
    let rows = client.execute("SELECT 1 AS x".into(), Some(transaction.clone())).await.expect("an info");
    assert_eq!(collect(&mut client, rows).await.expect("an answer").num_rows(), 1);
    client.end_transaction(transaction, arrow_flight::sql::EndTransaction::Rollback).await.expect("ends");
}

/// Whose answer never ends within a test.
const ENDLESS: &str =
    "SELECT a.value, b.value FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";

fn one_at_a_time(statement_timeout: Duration) -> impl FnOnce(Builder) -> Builder {
    move |builder| builder.settings(Settings { statements_max: 1, statement_timeout, ..Settings::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_cancels_its_statement() {
    let served = Served::with(one_at_a_time(Duration::from_mins(10))).await;
    let mut client = served.client().await;
    let info = client.execute(ENDLESS.into(), None).await.expect("an info");
    let mut endless = redeem(&mut client, &info).await.expect("an answer");
    endless.try_next().await.expect("rows").expect("rows");
    let mut second = served.client().await;
    let waiting = query(&mut second, "SELECT 1 AS x");
    let mut waiting = std::pin::pin!(waiting);
    timeout(Duration::from_millis(300), &mut waiting).await.expect_err("there is one place, and it is taken");
    drop(endless);
    let rows = timeout(LONG, waiting).await.expect("the place is free").expect("an answer");
    assert_eq!(rows.num_rows(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_is_given_up() {
    let served = Served::with(one_at_a_time(Duration::from_secs(1))).await;
    let mut client = served.client().await;
    let info = client.execute(ENDLESS.into(), None).await.expect("an info");
    let mut endless = redeem(&mut client, &info).await.expect("an answer");
    endless.try_next().await.expect("rows").expect("rows");
    // Nobody reads on. The statement's place comes free nevertheless.
    let mut second = served.client().await;
    let rows = loop {
        match timeout(LONG, query(&mut second, "SELECT 1 AS x")).await.expect("the place comes free") {
            Ok(rows) => break rows,
            Err(error) => assert_eq!(code(error).0, Code::DeadlineExceeded),
        }
    };
    assert_eq!(rows.num_rows(), 1);
    let error = loop {
        match endless.try_next().await {
            Ok(batch) => assert!(batch.is_some(), "an answer that was cut off must not look complete"),
            Err(error) => break error,
        }
    };
    assert_eq!(code(error).0, Code::DeadlineExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_rows_are_cut_into_messages_that_clients_take() {
    let served = Served::new().await;
    let long = "x".repeat(300_000);
    block_in_place(|| {
        let topic = served.fixture.topic("long", 1);
        for _ in 0..20 {
            served.fixture.append(&topic, 0, &[(); 3].map(|()| Row::text(1_000, "k", &long)));
        }
    });
    // The client takes messages of 4 MiB at most; these are 18 MB.
    let rows = query(&mut served.client().await, "SELECT * FROM long").await.expect("an answer");
    let mut offsets = offsets(&rows);
    offsets.sort_unstable();
    assert_eq!(offsets, (0..60).collect::<Vec<_>>());
    let values = rows.column_by_name("value").expect("it").as_binary::<i32>();
    assert!(values.iter().all(|value| value.is_some_and(|value| value == long.as_bytes())));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_reach_is_refused_unless_it_is_wanted() {
    let fixture = block_in_place(Fixture::new);
    let engine = fixture.engine(|builder| builder);
    let open = FlightSettings { listen: "0.0.0.0:0".parse().expect("an address"), open_to_others: false };
    let error = FlightServer::start(engine.clone(), open.clone()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("open_to_others"), "{error}");
    let wanted = FlightSettings { open_to_others: true, ..open };
    FlightServer::start(engine, wanted).await.expect("wanted").shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named() {
    let served = Served::new().await;
    let address = served.server.local_addr();
    let engine = served.fixture.engine(|builder| builder);
    let settings = FlightSettings { listen: address, ..FlightSettings::default() };
    let error = FlightServer::start(engine, settings).await.expect_err("taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_what_runs() {
    let served = Served::new().await;
    let mut client = served.client().await;
    let info = client.execute(ENDLESS.into(), None).await.expect("an info");
    let mut endless = redeem(&mut client, &info).await.expect("an answer");
    endless.try_next().await.expect("rows").expect("rows");
    let address = served.server.local_addr();
    timeout(LONG, served.server.shutdown()).await.expect("does not wait for the end of the answer");
    let ended = timeout(LONG, async {
        while endless.try_next().await?.is_some() {}
        Ok::<_, FlightError>(())
    });
    ended.await.expect("ends").expect_err("an answer that was cut off must not look complete");
    tokio::net::TcpStream::connect(address).await.expect_err("nobody listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_command_of_ours_is_unimplemented() {
    let served = Served::new().await;
    let mut client = served.client().await;
    for name in ["CancelFlightInfo", "SetSessionOptions", "nonsense"] {
        let action = Action { r#type: name.into(), body: Vec::new().into() };
        let error = client.do_action(action).await.expect_err(name);
        assert_eq!(code(error).0, Code::Unimplemented, "{name}");
    }
    let forged = arrow_flight::Ticket::new(vec![255, 255, 255]);
    assert_eq!(code(client.do_get(forged).await.expect_err("no ticket")).0, Code::InvalidArgument);
    let command = CommandPreparedStatementQuery { prepared_statement_handle: b"7".as_ref().into() };
    let ticket = arrow_flight::sql::ProstMessageExt::as_any(&command);
    let ticket = arrow_flight::Ticket::new(prost::Message::encode_to_vec(&ticket));
    assert_eq!(code(client.do_get(ticket).await.expect_err("no statement")).0, Code::NotFound);
}

/// A bound for what must happen sooner or later.
const LONG: Duration = Duration::from_secs(30);
