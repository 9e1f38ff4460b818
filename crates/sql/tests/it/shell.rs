//! Behaviour of: the shell, against a server.

use std::io::{BufReader, ErrorKind};
use std::net::SocketAddr;

use kolumn_sql::shell::{self, Format};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::flight::Served;
use crate::support::Row;

/// What is printed for a text given as the statement.
async fn printed(address: SocketAddr, text: &str, format: Format) -> String {
    let mut output = Vec::new();
    let outcome = shell::run(address, Some(text), format, &mut BufReader::new(&b""[..]), &mut output).await;
    outcome.unwrap_or_else(|error| panic!("{text}: {error}"));
    String::from_utf8(output).expect("UTF-8")
}

/// A server with a topic `odd` of keys, values and headers that are hard to print.
async fn odd() -> Served {
    let served = Served::new().await;
    let plain = Row::text(1_700_000_000_123, "a,b", "say \"hi\"\n\tto all");
    let control = Row { key: Some(b"\x1b[31mred"), value: Some(b"\xff\x00"), ..plain.clone() };
    let headers = vec![("trace", Some(&b"1"[..])), ("trace", None)];
    let nothing = Row { timestamp: -1, key: None, value: Some(b""), headers };
    tokio::task::block_in_place(|| {
        let odd = served.fixture.topic("odd", 1);
        served.fixture.append(&odd, 0, &[plain, control, nothing]);
    });
    served
}

const ODD: &str = r#"SELECT "offset", timestamp, key, value, headers FROM odd ORDER BY "offset""#;

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_aligned_and_counted() {
    let served = odd().await;
    let address = served.server.local_addr();
    let expect = r#" offset | timestamp               | key                | value              | headers
--------+-------------------------+--------------------+--------------------+------------------------------------------------------------
      0 | 2023-11-14T22:13:20.123 | a,b                | say "hi"\n\tto all | []
      1 | 2023-11-14T22:13:20.123 | \x1b5b33316d726564 | \xff00             | []
      2 | NULL                    | NULL               |                    | [{"key":"trace","value":"1"},{"key":"trace","value":null}]
(3 rows)
"#;
    assert_eq!(printed(address, ODD, Format::Table).await, expect);
    let text = printed(address, "SELECT 7 AS seven, 'é' AS e, 'x' AS last", Format::Table).await;
    assert_eq!(text, " seven | e | last\n-------+---+------\n     7 | é | x\n(1 row)\n");
    let text =
        printed(address, "SELECT '日本' AS a, 1 AS b UNION ALL SELECT 'x', 2 ORDER BY b", Format::Table)
            .await;
    assert_eq!(text, " a    | b\n------+---\n 日本 | 1\n x    | 2\n(2 rows)\n");
    let text = printed(address, "SELECT 1 AS x WHERE false", Format::Table).await;
    assert_eq!(text, " x\n---\n(0 rows)\n");
    assert_eq!(printed(address, "SET TIME ZONE 'UTC'", Format::Table).await, "OK\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_is_quoted_where_it_must_be() {
    let served = odd().await;
    let text = printed(served.server.local_addr(), ODD, Format::Csv).await;
    let expect = "offset,timestamp,key,value,headers\n\
        0,2023-11-14T22:13:20.123,\"a,b\",\"say \"\"hi\"\"\n\tto all\",[]\n\
        1,2023-11-14T22:13:20.123,\\x1b5b33316d726564,\\xff00,[]\n\
        2,,,\"\",\"[{\"\"key\"\":\"\"trace\"\",\"\"value\"\":\"\"1\"\"},{\"\"key\"\":\"\"trace\"\",\"\"value\"\":null}]\"\n";
    assert_eq!(text, expect);
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_keeps_the_ends_of_lines_in_quotes() {
    let served = Served::new().await;
    let address = served.server.local_addr();
    for end in ["\r", "\n", "\r\n"] {
        let text = format!("SELECT 'a{end}b' AS x");
        assert_eq!(printed(address, &text, Format::Csv).await, format!("x\n\"a{end}b\"\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_shown_is_an_error() {
    let served = Served::new().await;
    let text = "SELECT arrow_cast(9223372036854775807, 'Timestamp(Second, None)') AS t";
    for format in [Format::Table, Format::Csv, Format::Json] {
        let mut output = Vec::new();
        let address = served.server.local_addr();
        let outcome =
            shell::run(address, Some(text), format, &mut BufReader::new(&b""[..]), &mut output).await;
        let shown = String::from_utf8_lossy(&output).into_owned();
        assert!(outcome.is_err() && !shown.contains("ERROR"), "{format:?}: {outcome:?}, {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_an_object_a_line() {
    let served = odd().await;
    let address = served.server.local_addr();
    let text = printed(address, ODD, Format::Json).await;
    let expect = r#"{"offset":0,"timestamp":"2023-11-14T22:13:20.123","key":"a,b","value":"say \"hi\"\n\tto all","headers":[]}
{"offset":1,"timestamp":"2023-11-14T22:13:20.123","key":"\\x1b5b33316d726564","value":"\\xff00","headers":[]}
{"offset":2,"timestamp":null,"key":null,"value":"","headers":[{"key":"trace","value":"1"},{"key":"trace","value":null}]}
"#;
    assert_eq!(text, expect);
    let text = "SELECT 9007199254740993 AS i, 0.5 AS f, CAST('NaN' AS DOUBLE) AS n, true AS b, \
                CAST(1.10 AS DECIMAL(5,2)) AS d, DATE '2024-02-29' AS day, [1, NULL] AS list, \
                arrow_cast('k', 'Dictionary(Int32, Utf8)') AS dict, chr(27) || chr(133) AS c";
    let expect = "{\"i\":9007199254740993,\"f\":0.5,\"n\":\"NaN\",\"b\":true,\"d\":1.10,\"day\":\"2024-02-29\",\
                  \"list\":[1,null],\"dict\":\"k\",\"c\":\"\\u001b\\u0085\"}\n";
    assert_eq!(printed(address, text, Format::Json).await, expect);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_control_character_of_a_record_comes_out_as_it_is() {
    let served = odd().await;
    let address = served.server.local_addr();
    let text = "SELECT chr(27) || '[2J' AS t, chr(13) AS r, chr(8238) AS \"\u{1b}n\", key FROM odd";
    for format in [Format::Table, Format::Csv, Format::Json] {
        let text = printed(address, text, format).await;
        // In CSV, ends of lines are quoted, and stay what they are.
        let text = if format == Format::Csv { text.replace("\"\r\"", "") } else { text };
        let stray = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(stray, None, "{format:?}: {text:?}");
    }
    let mut output = Vec::new();
    let bad = "SELECT * FROM \"\u{1b}[31m\"";
    let error =
        shell::run(address, Some(bad), Format::Table, &mut BufReader::new(&b""[..]), &mut output).await;
    assert!(!error.expect_err("no such table").to_string().contains('\u{1b}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_are_printed_as_they_come() {
    let served = Served::new().await;
    let text = "SELECT value, 'x' AS x FROM generate_series(1, 25000) ORDER BY value";
    let text = printed(served.server.local_addr(), text, Format::Table).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 25_003);
    assert_eq!((lines[2], lines[1_002], lines[25_001]), ("     1 | x", "  1001 | x", " 25000 | x"));
    assert_eq!(lines[25_002], "(25000 rows)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_and_a_script_may_hold_several_statements() {
    let served = Served::new().await;
    let address = served.server.local_addr();
    let text = "SELECT ';' AS a; -- one\n\nSELECT 2\n AS b;;";
    assert_eq!(printed(address, text, Format::Csv).await, "a\n;\nb\n2\n");
    let mut output = Vec::new();
    let mut input = BufReader::new(text.trim_end_matches(';').as_bytes());
    shell::run(address, None, Format::Csv, &mut input, &mut output).await.expect("answers");
    assert_eq!(String::from_utf8_lossy(&output), "a\n;\nb\n2\n");
    // The first statement that fails ends it, and what was answered before is there.
    let script = "SELECT 1 AS x; SELECT * FROM nowhere; SELECT 3 AS z;";
    let mut output = Vec::new();
    let mut input = BufReader::new(script.as_bytes());
    let error = shell::run(address, None, Format::Csv, &mut input, &mut output).await.expect_err("fails");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(String::from_utf8_lossy(&output), "x\n1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_end_the_shell() {
    let served = Served::new().await;
    let address = served.server.local_addr();
    let check = async |input: &str, expect: &str| {
        let mut output = Vec::new();
        let mut input = BufReader::new(input.as_bytes());
        shell::interact(address, Format::Csv, &mut input, &mut output).await.expect("ends well");
        let output = String::from_utf8(output).expect("UTF-8");
        let (_, output) = output.split_once('\n').expect("a greeting");
        assert_eq!(output, expect);
    };
    check("SELECT\n 1 AS x\n;\nquit\nSELECT 2;\n", "sql>   ->   -> x\n1\nsql> ").await;
    check("SELECT 1 AS x;", "sql> x\n1\nsql> \n").await;
    check("\\q\n", "sql> ").await;
    check("EXIT;\n", "sql> ").await;
    let mut output = Vec::new();
    let mut input = BufReader::new(&b"SELECT * FROM nowhere;\n\xff\nhelp\nSELECT 5 AS five;\n"[..]);
    shell::interact(address, Format::Csv, &mut input, &mut output).await.expect("ends well");
    let output = String::from_utf8(output).expect("UTF-8");
    for part in ["error: ", "nowhere", "not UTF-8", "SHOW TABLES", "five\n5\n"] {
        assert!(output.contains(part), "{part} in {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_connect_is_told_where_and_what_to_do() {
    let served = Served::new().await;
    let address = served.server.local_addr();
    served.server.shutdown().await;
    let (mut input, mut output) = (BufReader::new(&b""[..]), Vec::new());
    let asked = shell::run(address, Some("SELECT 1"), Format::Table, &mut input, &mut output);
    let error = asked.await.expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    for part in [&address.to_string(), "is the broker running", "--sql", "--address"] {
        assert!(error.to_string().contains(part), "{part} in {error}");
    }
}

/// A server that answers what begins so with this, and hangs up on others.
async fn pretender(greeting: &'static [u8], answer: &'static [u8]) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut begin = vec![0; greeting.len()];
            if stream.read_exact(&mut begin).await.is_ok() && begin == greeting {
                let _ = stream.write_all(answer).await;
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_another_kind_of_server_is_told_which_it_is() {
    let kafka = pretender(b"\0\0\0\x0a\0\x12\0\0", b"\0\0\0\x0a\0\0\0\x07\0\0").await;
    let postgres = pretender(&[0, 0, 0, 8, 4, 210, 22, 47], b"N").await;
    let http = pretender(b"GET / HTTP/1.1\r\n", b"HTTP/1.1 404 Not Found\r\n\r\n").await;
    let nobody = pretender(b"nothing that is asked", b"").await;
    for (address, part) in [
        (kafka, "Kafka broker"),
        (postgres, "PostgreSQL"),
        (http, "HTTP server"),
        (nobody, "does not answer"),
    ] {
        let (mut input, mut output) = (BufReader::new(&b""[..]), Vec::new());
        let asked = shell::run(address, Some("SELECT 1"), Format::Table, &mut input, &mut output);
        let error = asked.await.expect_err("no Flight SQL").to_string();
        for part in [part, &address.to_string()] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
