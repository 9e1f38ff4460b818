//! What drivers and tools send to the PostgreSQL server, beyond psql.

use crate::postgres::{Client, show, with_client};

#[test]
fn a_driver_that_quotes_its_encoding_begins_a_session() {
    // asyncpg
    with_client(|_, address| async move {
        let (mut client, _) = Client::with(address, &[("client_encoding", "'utf-8'")]).await;
        assert_eq!(client.ask("SHOW client_encoding").await, "client_encoding\nUTF8\nC:SHOW");
    });
}

#[test]
fn bytes_of_a_type_that_is_left_open_are_bytes_beside_bytes() {
    // pg8000 writes bytes so, and says nothing of their type
    let hex: &[u8] = br"\x6b31";
    with_client(|mut client, _| async move {
        for (text, value, expect) in [
            ("SELECT count(*) FROM orders WHERE key = $1", hex, "1"),
            ("SELECT count(*) FROM orders WHERE $1 <> key", hex, "1"),
            ("SELECT count(*) FROM orders WHERE key IN ($1)", hex, "1"),
            ("SELECT count(*) FROM orders WHERE key = $1", b"k1", "1"),
            ("SELECT count(*) FROM orders WHERE key::text = $1", hex, "0"),
            ("SELECT $1", hex, r"\x6b31"),
        ] {
            for declared in [&[][..], &[0], &[705]] {
                client.parse("", text, declared).await;
                client.bind("", 0, &[Some(value)], 0).await;
                client.execute(0).await;
                assert_eq!(show(&client.sync().await), format!("1:\n2:\n{expect}\nC:SELECT 1"), "{text}");
            }
        }
        // a text that says so stays one
        client.parse("", "SELECT count(*) FROM orders WHERE key = $1", &[25]).await;
        client.bind("", 0, &[Some(hex)], 0).await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\n0\nC:SELECT 1");
    });
}

#[test]
fn what_sqlalchemy_asks_about_schemas_and_columns_is_answered() {
    with_client(|mut client, _| async move {
        let schemas = "SELECT pg_catalog.pg_namespace.nspname FROM pg_catalog.pg_namespace WHERE \
                       (pg_catalog.pg_namespace.nspname NOT LIKE 'pg/_'::VARCHAR || '%' ESCAPE '/') \
                       ORDER BY pg_catalog.pg_namespace.nspname";
        let expect = "nspname\ninformation_schema\nkafka/kafka_topics\nsystem\nC:SELECT 3";
        assert_eq!(client.ask(schemas).await, expect);
        // tables by their full names, and a query inside that refers to the outer one
        let columns = "SELECT pg_catalog.pg_attribute.attname AS name, CASE WHEN (pg_catalog.pg_attribute.attcollation != 0 AND \
                       (SELECT pg_catalog.pg_type.typcollation FROM pg_catalog.pg_type \
                       WHERE pg_catalog.pg_type.oid = pg_catalog.pg_attribute.atttypid) != pg_catalog.pg_attribute.attcollation) \
                       THEN 'x' ELSE NULL END AS collation FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute \
                       ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > 0 \
                       WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r'::VARCHAR, 'v']) AND pg_catalog.pg_class.relname IN ('orders') \
                       ORDER BY pg_catalog.pg_attribute.attnum LIMIT 2";
        assert_eq!(client.ask(columns).await, "name|collation\npartition|∅\noffset|∅\nC:SELECT 2");
        // parameters of what is left out count
        let keys = "SELECT conname FROM pg_catalog.pg_constraint WHERE contype = $1 AND conrelid = $2";
        client.parse("", keys, &[25, 26]).await;
        client.bind("", 0, &[Some(b"p"), Some(b"1")], 0).await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\nC:SELECT 0");
    });
}

#[test]
fn a_parameter_that_is_cast_has_the_type_that_it_is_cast_to() {
    // asyncpg writes what it is told to
    with_client(|mut client, _| async move {
        let text = "SELECT $1::bigint, $2::int8[], $3::text[], $4::date, $5::boolean, $6::timestamptz";
        client.parse("s", text, &[]).await;
        client.send(b'D', b"Ss\0").await;
        let described = client.sync().await;
        let told = described.iter().find(|(kind, _)| *kind == 't').expect("types");
        let types: Vec<u32> = told.1[2..]
            .chunks(4)
            .map(|oid| u32::from_be_bytes(oid.try_into().expect("four bytes")))
            .collect();
        assert_eq!(types, [20, 1016, 1009, 1082, 16, 25]);
        let listed = "SELECT count(*) FROM orders WHERE \"offset\" = ANY($1::int8[])";
        client.parse("", listed, &[]).await;
        client.bind("", 0, &[Some(b"{0,2}")], 0).await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\n2\nC:SELECT 1");
        let types = "SELECT t.typname FROM pg_catalog.pg_type t WHERE t.oid = any($1::oid[]) ORDER BY 1";
        client.parse("", types, &[]).await;
        client.bind("", 0, &[Some(b"{16,17}")], 0).await;
        client.execute(0).await;
        assert_eq!(show(&client.sync().await), "1:\n2:\nbool\nbytea\nC:SELECT 2");
    });
}
