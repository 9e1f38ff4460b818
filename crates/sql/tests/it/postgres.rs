//! The server of PostgreSQL's wire protocol, spoken to by a client of a few lines.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kolumn_sql::postgres::{PostgresServer, PostgresSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Fixture, Row};

/// What the server sent: the kind of a message and its body.
pub(crate) type Reply = (char, Vec<u8>);

pub(crate) struct Client {
    stream: TcpStream,
    process: i32,
    secret: Vec<u8>,
}

impl Client {
    async fn raw(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("listens")
    }

    async fn new(address: SocketAddr) -> Self {
        Self::with(address, &[]).await.0
    }

    pub(crate) async fn with(address: SocketAddr, parameters: &[(&str, &str)]) -> (Self, Vec<Reply>) {
        let mut client = Self { stream: Self::raw(address).await, process: 0, secret: Vec::new() };
        let mut body = 0x0003_0000_i32.to_be_bytes().to_vec();
        for (name, value) in [("user", "me"), ("database", "kolumn")].iter().chain(parameters) {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        client.opening(&body).await;
        let replies = client.until_ready().await;
        if let Some((_, key)) = replies.iter().find(|(kind, _)| *kind == 'K') {
            client.process = i32::from_be_bytes(key[..4].try_into().expect("four bytes"));
            client.secret = key[4..].to_vec();
        }
        (client, replies)
    }

    async fn opening(&mut self, body: &[u8]) {
        let len = i32::try_from(body.len() + 4).expect("short").to_be_bytes();
        self.stream.write_all(&[&len[..], body].concat()).await.expect("sent");
    }

    pub(crate) async fn send(&mut self, kind: u8, body: &[u8]) {
        let len = i32::try_from(body.len() + 4).expect("short").to_be_bytes();
        self.stream.write_all(&[&[kind][..], &len, body].concat()).await.expect("sent");
    }

    async fn reply(&mut self) -> io::Result<Reply> {
        let kind = self.stream.read_u8().await?;
        let len = self.stream.read_i32().await?;
        let mut body = vec![0; usize::try_from(len - 4).expect("a length")];
        self.stream.read_exact(&mut body).await?;
        Ok((char::from(kind), body))
    }

    /// All replies up to `ReadyForQuery`, or to the end.
    async fn until_ready(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Ok(reply) = self.reply().await {
            let ready = reply.0 == 'Z';
            replies.push(reply);
            if ready {
                break;
            }
        }
        replies
    }

    async fn query(&mut self, text: &str) -> Vec<Reply> {
        self.send(b'Q', &[text.as_bytes(), b"\0"].concat()).await;
        self.until_ready().await
    }

    /// A statement's names of columns, rows and tag, as one text.
    pub(crate) async fn ask(&mut self, text: &str) -> String {
        show(&self.query(text).await)
    }

    pub(crate) async fn parse(&mut self, name: &str, text: &str, types: &[u32]) {
        let mut body = [name.as_bytes(), b"\0", text.as_bytes(), b"\0"].concat();
        body.extend(u16::try_from(types.len()).expect("few").to_be_bytes());
        for oid in types {
            body.extend(oid.to_be_bytes());
        }
        self.send(b'P', &body).await;
    }

    pub(crate) async fn bind(&mut self, name: &str, format: i16, values: &[Option<&[u8]>], result: i16) {
        let mut body = [&b"\0"[..], name.as_bytes(), b"\0\0\x01", &format.to_be_bytes()].concat();
        body.extend(u16::try_from(values.len()).expect("few").to_be_bytes());
        for value in values {
            let len = value.map_or(-1, |value| i32::try_from(value.len()).expect("short"));
            body.extend(len.to_be_bytes());
            body.extend(value.unwrap_or_default());
        }
        body.extend([&b"\0\x01"[..], &result.to_be_bytes()].concat());
        self.send(b'B', &body).await;
    }

    pub(crate) async fn execute(&mut self, rows_max: i32) {
        self.send(b'E', &[&b"\0"[..], &rows_max.to_be_bytes()].concat()).await;
    }

    pub(crate) async fn sync(&mut self) -> Vec<Reply> {
        self.send(b'S', b"").await;
        self.until_ready().await
    }
}

/// Replies as a text: a line each.
pub(crate) fn show(replies: &[Reply]) -> String {
    let line = |(kind, body): &Reply| match kind {
        'T' => Some(names(body).join("|")),
        'D' => Some(cells(body).join("|")),
        'C' | 'I' | 's' | '1' | '2' | '3' | 'n' => {
            let text = String::from_utf8_lossy(body).trim_end_matches('\0').to_owned();
            Some(format!("{kind}:{text}"))
        }
        'E' | 'N' => Some(format!("{kind}:{} {}", field(body, 'C'), field(body, 'M'))),
        'Z' => (body != b"I").then(|| format!("Z:{}", char::from(body[0]))),
        _ => None,
    };
    replies.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn field(body: &[u8], code: char) -> String {
    let fields = body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let found = fields.into_iter().find_map(|field| field.strip_prefix(code).map(str::to_owned));
    found.unwrap_or_default()
}

fn names(body: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = &body[2..];
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = &rest[end + 19..];
    }
    names
}

fn raw_cells(body: &[u8]) -> Vec<Option<&[u8]>> {
    let mut cells = Vec::new();
    let mut rest = &body[2..];
    while !rest.is_empty() {
        let len = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        rest = &rest[4..];
        match usize::try_from(len) {
            Ok(len) => {
                cells.push(Some(&rest[..len]));
                rest = &rest[len..];
            }
            Err(_) => cells.push(None),
        }
    }
    cells
}

fn cells(body: &[u8]) -> Vec<String> {
    let text = |cell: Option<&[u8]>| {
        cell.map_or("∅".to_owned(), |cell| String::from_utf8_lossy(cell).into_owned())
    };
    raw_cells(body).into_iter().map(text).collect()
}

async fn serve(fixture: &Fixture, change: impl FnOnce(&mut PostgresSettings)) -> PostgresServer {
    let mut settings = PostgresSettings { listen: ([127, 0, 0, 1], 0).into(), ..PostgresSettings::default() };
    change(&mut settings);
    let engine = fixture.engine(|builder| builder.catalog_alias("vast"));
    PostgresServer::start(engine, settings).await.expect("listens")
}

fn orders() -> Fixture {
    let fixture = Fixture::new();
    let topic = fixture.topic("orders", 1);
    let mut third = Row::text(1_700_000_000_500, "k3", "{\"a\":3}");
    third.headers = vec![("h", Some(&b"x"[..])), ("h", None)];
    let rows =
        [Row::text(1_700_000_000_000, "k1", "{\"a\":1}"), Row { timestamp: -1, ..Row::default() }, third];
    fixture.append(&topic, 0, &rows);
    fixture
}

/// The store is filled outside of the runtime, where waiting may block.
fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(test);
}

/// Runs a test with a client of a server over the orders.
pub(crate) fn with_client<F: Future<Output = ()>>(test: impl FnOnce(Client, SocketAddr) -> F) {
    let fixture = orders();
    block_on(async {
        let server = serve(&fixture, |_| {}).await;
        let address = server.local_addr();
        test(Client::new(address).await, address).await;
        server.shutdown().await;
    });
}

#[test]
fn a_text_of_several_statements_is_answered_in_order() {
    with_client(|mut client, _| async move {
        let text = "SELECT 'a;b' AS x; ; SELECT \"offset\", \"timestamp\", key, value, headers FROM orders ORDER BY 1";
        assert_eq!(
            client.ask(text).await,
            "x\na;b\nC:SELECT 1\n\
             offset|timestamp|key|value|headers\n\
             0|2023-11-14 22:13:20|\\x6b31|\\x7b2261223a317d|[]\n\
             1|∅|∅|∅|[]\n\
             2|2023-11-14 22:13:20.5|\\x6b33|\\x7b2261223a337d|\
             [{\"key\":\"h\",\"value\":\"x\"},{\"key\":\"h\",\"value\":null}]\n\
             C:SELECT 3"
        );
        assert_eq!(client.ask(" ; ").await, "I:");
    });
}

#[test]
fn a_session_begins_with_what_clients_rely_on() {
    let fixture = orders();
    block_on(async {
        let server = serve(&fixture, |_| {}).await;
        let parameters = [("application_name", "test"), ("TimeZone", "Nowhere/Land")];
        let (_, replies) = Client::with(server.local_addr(), &parameters).await;
        let told: Vec<String> = replies
            .iter()
            .filter(|(kind, _)| *kind == 'S')
            .map(|(_, body)| String::from_utf8_lossy(body).replace('\0', "="))
            .collect();
        for expect in [
            "client_encoding=UTF8=",
            "standard_conforming_strings=on=",
            "application_name=test=",
            "TimeZone=UTC=",
        ] {
            assert!(told.iter().any(|told| told == expect), "{expect} in {told:?}");
        }
        assert!(told.iter().any(|told| told.starts_with("server_version=15.")), "{told:?}");
        assert!(show(&replies).starts_with("N:22023 "), "an unknown zone is said");
        // as libpq spells it
        let (mut client, _) = Client::with(server.local_addr(), &[("timezone", "Europe/Paris")]).await;
        let clock = client.ask("SELECT min(\"timestamp\")::timestamptz AS paris FROM orders").await;
        assert_eq!(clock, "paris\n2023-11-14 22:13:20+01\nC:SELECT 1");
    });
}

#[test]
fn prepared_statements_take_texts_and_bytes_and_answer_in_both() {
    with_client(|mut client, _| async move {
        client.parse("s", "SELECT \"offset\", \"offset\" = $1 AS b, CAST(1.5 AS DOUBLE) AS f, key FROM orders WHERE \"offset\" >= $1 ORDER BY 1", &[20]).await;
        client.bind("s", 0, &[Some(b"2")], 0).await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\n2|t|1.5|\\x6b33\nC:SELECT 1");
        client.bind("s", 1, &[Some(&2_i64.to_be_bytes())], 1).await;
        client.execute(0).await;
        let replies = client.sync().await;
        let row = replies.iter().find(|(kind, _)| *kind == 'D').expect("a row");
        let expect: [&[u8]; 4] = [&2_i64.to_be_bytes(), &[1], &1.5_f64.to_be_bytes(), b"k3"];
        assert_eq!(raw_cells(&row.1), expect.map(Some));
        client.send(b'D', b"Ss\0").await;
        let described = client.sync().await;
        assert_eq!(described[0], ('t', [&1_u16.to_be_bytes()[..], &20_u32.to_be_bytes()].concat()));
        assert_eq!(names(&described[1].1), ["offset", "b", "f", "key"]);
        client.send(b'C', b"Ss\0").await;
        client.bind("s", 0, &[Some(b"2")], 0).await;
        assert_eq!(show(&client.sync().await), "3:\nE:26000 prepared statement `s` does not exist");
    });
}

#[test]
fn a_portal_gives_its_rows_in_goes_and_ends_with_its_transaction() {
    with_client(|mut client, _| async move {
        client.ask("BEGIN").await;
        client.parse("", "SELECT \"offset\" FROM orders ORDER BY 1", &[]).await;
        client.bind("", 0, &[], 0).await;
        client.execute(2).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\n0\n1\ns:\nZ:T");
        client.execute(2).await;
        assert_eq!(show(&client.sync().await), "2\nC:SELECT 1\nZ:T");
        client.ask("COMMIT").await;
        client.bind("", 0, &[], 0).await;
        client.sync().await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "E:34000 portal `` does not exist");
    });
}

#[test]
fn errors_have_their_sqlstate_and_the_session_goes_on() {
    with_client(|mut client, _| async move {
        for (text, expect) in [
            ("SELEC 1", "42601"),
            ("SELECT * FROM nosuch", "42P01"),
            ("SELECT nosuch FROM orders", "42703"),
            ("SELECT nosuch(1)", "42883"),
            ("INSERT INTO orders VALUES (1)", "25006"),
            ("DROP TABLE orders", "25006"),
            ("SELECT 1/0", "22000"),
            ("SET client_encoding = 'LATIN1'", "22023"),
            ("SELECT * FROM pg_catalog.nosuch", "42P01"),
            ("COPY orders TO STDOUT", "0A000"),
            ("copy (SELECT 1) to stdout (format csv)", "0A000"),
            ("SHOW datafusion.execution.batch_size", "0A000"),
        ] {
            let replies = client.query(text).await;
            let error =
                replies.iter().find(|(kind, _)| *kind == 'E').unwrap_or_else(|| panic!("{text} is refused"));
            assert_eq!(field(&error.1, 'C'), expect, "{text}: {}", field(&error.1, 'M'));
        }
        assert_eq!(client.ask("SELECT 1 AS x").await, "x\n1\nC:SELECT 1");
    });
}

#[test]
fn a_query_or_sync_that_cannot_be_read_is_answered_until_ready() {
    with_client(|mut client, _| async move {
        for (kind, body, expect) in [
            (b'Q', &b"SELECT '\xff'\0"[..], "22021"),
            (b'Q', b"SELECT 1", "08P01"),
            (b'Q', b"", "08P01"),
            (b'Q', b"SELECT 1\0SELECT 2\0", "08P01"),
            (b'S', b"\0", "08P01"),
        ] {
            client.send(kind, body).await;
            let replies = tokio::time::timeout(Duration::from_mins(1), client.until_ready()).await;
            let replies = show(&replies.expect("does not wait for more"));
            assert!(replies.starts_with(&format!("E:{expect}")), "{body:?}: {replies}");
            assert_eq!(client.ask("SELECT 1 AS x").await, "x\n1\nC:SELECT 1", "{body:?}");
        }
    });
}

#[test]
fn a_transaction_that_has_failed_takes_nothing_but_its_end() {
    with_client(|mut client, _| async move {
        assert_eq!(client.ask("BEGIN").await, "C:BEGIN\nZ:T");
        assert!(client.ask("SELEC").await.ends_with("Z:E"));
        assert!(client.ask("SELECT 1").await.starts_with("E:25P02"));
        assert_eq!(client.ask("COMMIT").await, "C:ROLLBACK");
        assert_eq!(
            client.ask("START TRANSACTION READ ONLY; SELECT 1 AS x; COMMIT").await,
            "C:BEGIN\nx\n1\nC:SELECT 1\nC:COMMIT"
        );
    });
}

#[test]
fn variables_are_set_and_shown() {
    with_client(|mut client, _| async move {
        assert_eq!(
            client.ask("SET extra_float_digits = 3; SHOW extra_float_digits").await,
            "C:SET\nextra_float_digits\n3\nC:SHOW"
        );
        assert_eq!(
            client.ask("SHOW TRANSACTION ISOLATION LEVEL").await,
            "transaction_isolation\nread committed\nC:SHOW"
        );
        assert_eq!(
            client.ask("SET bytea_output TO escape; SELECT key FROM orders LIMIT 1").await,
            "C:SET\nkey\nk1\nC:SELECT 1"
        );
        assert_eq!(
            client.ask("SET TIME ZONE 'Europe/Berlin'; SHOW timezone").await,
            "C:SET\nTimeZone\nEurope/Berlin\nC:SHOW"
        );
        assert_eq!(client.ask("SHOW TABLES").await, "Table\norders\nC:SHOW");
    });
}

#[test]
fn what_psql_asks_is_answered() {
    with_client(|mut client, _| async move {
        let listed = client
            .ask(
                "SELECT n.nspname as \"Schema\", c.relname as \"Name\", CASE c.relkind WHEN 'r' THEN 'table' END as \"Type\", \
                 pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\" FROM pg_catalog.pg_class c \
                 LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','p','') \
                 AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2",
            )
            .await;
        assert_eq!(listed, "Schema|Name|Type|Owner\nkafka/kafka_topics|orders|table|kolumn\nC:SELECT 1");
        let found = client
            .ask(
                "SELECT c.oid, n.nspname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.relname OPERATOR(pg_catalog.~) '^(orders)$' COLLATE pg_catalog.default",
            )
            .await;
        let oid = found.lines().nth(1).and_then(|row| row.split('|').next()).expect("a number").to_owned();
        let columns = client
            .ask(&format!(
                "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) \
                 FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull \
                 FROM pg_catalog.pg_attribute a WHERE a.attrelid = '{oid}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
            ))
            .await;
        assert_eq!(
            columns,
            "attname|format_type|pg_get_expr|attnotnull\npartition|integer|∅|t\noffset|bigint|∅|t\n\
             timestamp|timestamp without time zone|∅|f\nkey|bytea|∅|f\nvalue|bytea|∅|f\nheaders|json|∅|t\nC:SELECT 6"
        );
        let policies = "SELECT pol.polname, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE array_to_string(array(select rolname from \
                        pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END FROM pg_catalog.pg_policy pol";
        assert_eq!(client.ask(policies).await, "polname|case\nC:SELECT 0");
        assert_eq!(
            client
                .ask(
                    "SELECT 'orders'::regclass::oid = c.oid AS same FROM pg_class c WHERE relname = 'orders'"
                )
                .await,
            "same\nt\nC:SELECT 1"
        );
        assert_eq!(
            client.ask("SELECT current_database(), count(*) FROM orders").await,
            "current_database|count\nkolumn|3\nC:SELECT 1"
        );
        assert_eq!(
            client.ask("SELECT current_schema()").await,
            "current_schema\nkafka/kafka_topics\nC:SELECT 1"
        );
        assert_eq!(
            client.ask("SELECT set_config('application_name', 'x', false); SHOW application_name").await,
            "set_config\nx\nC:SELECT 1\napplication_name\nx\nC:SHOW"
        );
        assert_eq!(client.ask("SELECT count(*) FROM pg_catalog.pg_index").await, "count\n0\nC:SELECT 1");
    });
}

/// Far too much to be done in the time of a test.
const ENDLESS: &str = "SELECT count(*) AS n FROM generate_series(1, 100000000000) AS a(x) WHERE x % 7 = 8";

#[test]
fn a_statement_is_cancelled_by_whoever_knows_the_secret() {
    with_client(|mut client, address| async move {
        let (process, secret) = (client.process, client.secret.clone());
        client.send(b'Q', &[ENDLESS.as_bytes(), b"\0"].concat()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let cancel = |secret: Vec<u8>| async move {
            let mut other = Client { stream: Client::raw(address).await, process: 0, secret: Vec::new() };
            other
                .opening(&[&80_877_102_i32.to_be_bytes()[..], &process.to_be_bytes(), &secret].concat())
                .await;
            assert!(other.reply().await.is_err(), "closed");
        };
        cancel(secret.iter().map(|byte| !byte).collect()).await;
        let early = tokio::time::timeout(Duration::from_millis(200), client.reply()).await;
        assert!(early.is_err(), "the wrong secret does nothing");
        cancel(secret).await;
        // A busy machine may not have planned it yet: then its column is not told.
        let replies = show(&client.until_ready().await);
        assert_eq!(replies.trim_start_matches("n\n"), "E:57014 canceling statement due to user request");
        client.ask("SET statement_timeout = '2s'").await;
        assert_eq!(client.ask(ENDLESS).await, "n\nE:57014 canceling statement due to statement timeout");
    });
}

#[test]
fn more_clients_than_there_are_places_are_told_so() {
    let fixture = orders();
    block_on(async {
        let server = serve(&fixture, |settings| settings.connections_max = 1).await;
        let mut first = Client::new(server.local_addr()).await;
        let (_, replies) = Client::with(server.local_addr(), &[]).await;
        assert_eq!(show(&replies), "E:53300 sorry, too many clients already");
        assert_eq!(first.ask("SELECT 1 AS x").await, "x\n1\nC:SELECT 1");
        // A client that goes away in the middle of a statement makes room.
        first.send(b'Q', &[ENDLESS.as_bytes(), b"\0"].concat()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(first);
        loop {
            let (_, replies) = Client::with(server.local_addr(), &[]).await;
            if replies.iter().any(|(kind, _)| *kind == 'Z') {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn messages_that_cannot_be_end_the_connection_and_nothing_else() {
    let fixture = orders();
    block_on(async {
        let server = serve(&fixture, |settings| {
            settings.message_len_max = 1000;
            settings.startup_timeout = Duration::from_millis(200);
        })
        .await;
        let address = server.local_addr();
        for bytes in [&b"Q\x7f\xff\xff\xff"[..], b"?\0\0\0\x04", b"p\0\0\0\x05\0", b"B\0\0\0\x02"] {
            let mut client = Client::new(address).await;
            client.stream.write_all(bytes).await.expect("sent");
            let replies = client.until_ready().await;
            assert!(matches!(replies.as_slice(), [('E', _)]), "{bytes:?}: {}", show(&replies));
        }
        let mut client = Client::new(address).await;
        client.send(b'P', b"s\0SELECT 1\0\xff\xff").await;
        client.send(b'H', b"").await;
        assert_eq!(show(&client.sync().await), "E:08P01 insufficient data left in message");
        assert_eq!(client.ask("SELECT 1 AS x").await, "x\n1\nC:SELECT 1");
        let mut silent = Client { stream: Client::raw(address).await, process: 0, secret: Vec::new() };
        assert!(silent.reply().await.is_err(), "who says nothing is let go");
        let mut refused = Client { stream: Client::raw(address).await, process: 0, secret: Vec::new() };
        refused.opening(&80_877_103_i32.to_be_bytes()).await;
        assert_eq!(refused.stream.read_u8().await.expect("an answer"), b'N', "no TLS");
    });
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let fixture = orders();
    block_on(async {
        let engine = fixture.engine(|builder| builder);
        let listen = ([0, 0, 0, 0], 0).into();
        let settings = PostgresSettings { listen, ..PostgresSettings::default() };
        let refused = PostgresServer::start(engine.clone(), settings.clone()).await.expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let open = PostgresSettings { open_to_others: true, ..settings };
        PostgresServer::start(engine, open).await.expect("allowed").shutdown().await;
    });
}

#[test]
fn a_server_that_stops_tells_its_clients() {
    let fixture = orders();
    block_on(async {
        let server = serve(&fixture, |_| {}).await;
        let mut idle = Client::new(server.local_addr()).await;
        let mut busy = Client::new(server.local_addr()).await;
        busy.send(b'Q', &[ENDLESS.as_bytes(), b"\0"].concat()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let address = server.local_addr();
        server.shutdown().await;
        assert!(show(&idle.until_ready().await).starts_with("E:57P01"));
        assert!(show(&busy.until_ready().await).starts_with("n\nE:57P01"));
        assert!(TcpStream::connect(address).await.is_err());
    });
}

#[test]
fn bytes_are_read_and_columns_named_as_in_postgresql() {
    with_client(|mut client, _| async move {
        for (text, expect) in [
            (r"SELECT count(*) FROM orders WHERE key = '\x6b31'::bytea", "count\n1\nC:SELECT 1"),
            (r"SELECT count(*) FROM orders WHERE key = CAST(E'\\x6b31' AS bytea)", "count\n1\nC:SELECT 1"),
            (r"SELECT count(*) FROM orders WHERE key = decode('6b31', 'hex')", "count\n1\nC:SELECT 1"),
            (r"SELECT count(*) FROM orders WHERE key IN ('\x6b31', '\x6b33')", "count\n2\nC:SELECT 1"),
            (r"SELECT count(*) FROM orders WHERE key = '\x6b31' AND '\x6B31' >= key", "count\n1\nC:SELECT 1"),
            (r"SELECT count(*) FROM orders WHERE key BETWEEN '\x6b31' AND 'k2'", "count\n1\nC:SELECT 1"),
            (r"SELECT '\x6b31' = 'k1'", "?column?\nf\nC:SELECT 1"),
            (
                "SELECT key::text, convert_from(key, 'UTF8') FROM orders LIMIT 1",
                "key|convert_from\nk1|k1\nC:SELECT 1",
            ),
            ("SELECT count(*), count(*) FROM orders", "count|count\n3|3\nC:SELECT 1"),
            ("SELECT 1, 1", "?column?|?column?\n1|1\nC:SELECT 1"),
            ("SELECT encode(key, 'base64') FROM orders LIMIT 1", "encode\nazE=\nC:SELECT 1"),
            (
                "SELECT to_char(\"timestamp\", 'YYYY-MM-DD HH24:MI') FROM orders LIMIT 1",
                "to_char\n2023-11-14 22:13\nC:SELECT 1",
            ),
            ("SELECT pg_size_pretty(123456789)", "pg_size_pretty\n118 MB\nC:SELECT 1"),
            ("SELECT pg_relation_size('orders')", "pg_relation_size\n∅\nC:SELECT 1"),
            ("SELECT to_regtype('nosuch')", "to_regtype\n∅\nC:SELECT 1"),
            ("SELECT word FROM pg_get_keywords()", "word\nC:SELECT 0"),
        ] {
            assert_eq!(client.ask(text).await, expect, "{text}");
        }
        for text in ["SELECT to_char(now(), 'Month')", "SET search_path TO system"] {
            assert!(client.ask(text).await.starts_with("E:0A000"), "{text}");
        }
    });
}

#[test]
fn declared_types_of_parameters_are_those_of_the_answer() {
    with_client(|mut client, _| async move {
        for (number, value) in [(21, "5"), (701, "1.5"), (1700, "2.25"), (16, "t")] {
            client.parse("", "SELECT $1", &[number]).await;
            client.bind("", 0, &[Some(value.as_bytes())], 0).await;
            client.execute(0).await;
            assert_eq!(show(&client.sync().await), format!("1:\n2:\n{value}\nC:SELECT 1"));
        }
    });
}
