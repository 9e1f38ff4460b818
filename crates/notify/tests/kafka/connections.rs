//! Each way to connect and to say who one is, and what is said when it is refused.

use kolumn_notify::target::{SendErrorKind, Target, chain};

use crate::server::{Kafka, PASSWORD, TOPIC, Way, deliveries};

#[tokio::test(flavor = "multi_thread")]
async fn every_combination_of_sasl_and_tls_delivers_and_what_is_refused_can_be_repaired() {
    let kafka = Kafka::start().await;
    let ways = ways(&kafka);
    let mut expect = Vec::new();
    for (name, way) in &ways {
        let target = kafka.target(way);
        target.probe().await.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        let batch = deliveries((0..10).map(|number| format!("{name}/{number}")));
        target.send(&batch).await.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        expect.extend((0..10).map(|number| (format!("{name}/{number}"), number.to_string())));
    }
    let mut found = kafka.records(TOPIC, expect.len()).await;
    found.sort();
    expect.sort();
    assert_eq!(found, expect);

    for (name, way) in refused(&kafka) {
        let target = kafka.target(&way);
        for error in
            [target.send(&deliveries(["a".to_owned()])).await.unwrap_err(), target.probe().await.unwrap_err()]
        {
            let said = chain(&error);
            assert_eq!((error.kind(), error.delivered()), (SendErrorKind::Temporary, 0), "{name}: {said}");
            assert!(said.contains("localhost") && !said.contains("not-the-password"), "{name}: {said}");
        }
    }
    // Nothing of what was refused has arrived.
    assert_eq!(kafka.records(TOPIC, expect.len()).await.len(), expect.len());
}

fn ways(kafka: &Kafka) -> Vec<(String, Way)> {
    let mut ways = vec![("open".to_owned(), Way::open())];
    for (tls, listener) in [("", "SASL"), ("+tls", "BOTH")] {
        for mechanism in ["plain", "sha256", "sha512"] {
            let mut keys = sasl(mechanism, PASSWORD);
            if listener == "BOTH" {
                keys.extend(authority(kafka, "ca.pem"));
            }
            ways.push((format!("{mechanism}{tls}"), Way { listener, keys }));
        }
    }
    ways.push(("tls".into(), Way { listener: "TLS", keys: authority(kafka, "ca.pem") }));
    let mut blind = authority(kafka, "other-ca.pem");
    blind.push(("TLS_SKIP_VERIFY", "on".into()));
    ways.push(("tls-skip-verify".into(), Way { listener: "TLS", keys: blind }));
    let mut mutual = authority(kafka, "ca.pem");
    mutual.extend(client(kafka, "client"));
    ways.push(("mutual".into(), Way { listener: "MUTUAL", keys: mutual }));
    ways
}

fn refused(kafka: &Kafka) -> Vec<(&'static str, Way)> {
    let mut refused = Vec::new();
    for (name, mechanism) in [("password of plain", "plain"), ("password of scram", "sha512")] {
        refused.push((name, Way { listener: "SASL", keys: sasl(mechanism, "not-the-password") }));
    }
    refused.push(("another authority", Way { listener: "TLS", keys: authority(kafka, "other-ca.pem") }));
    refused.push(("no certificate", Way { listener: "MUTUAL", keys: authority(kafka, "ca.pem") }));
    let mut stranger = authority(kafka, "ca.pem");
    stranger.extend(client(kafka, "stranger"));
    refused.push(("a stranger's certificate", Way { listener: "MUTUAL", keys: stranger }));
    refused.push(("no TLS where it is needed", Way::open_at("TLS")));
    refused.push(("no SASL where it is needed", Way::open_at("SASL")));
    refused
}

impl Way {
    fn open_at(listener: &'static str) -> Self {
        Self { listener, keys: Vec::new() }
    }
}

fn sasl(mechanism: &str, password: &str) -> Vec<(&'static str, String)> {
    vec![
        ("SASL", "on".into()),
        ("SASL_MECHANISM", mechanism.into()),
        ("SASL_USERNAME", "alice".into()),
        ("SASL_PASSWORD", password.into()),
    ]
}

fn authority(kafka: &Kafka, file: &str) -> Vec<(&'static str, String)> {
    vec![("TLS", "on".into()), ("TLS_CA", kafka.file(file).display().to_string())]
}

fn client(kafka: &Kafka, name: &str) -> Vec<(&'static str, String)> {
    let file = |end: &str| kafka.file(&format!("{name}.{end}.pem")).display().to_string();
    vec![("CLIENT_TLS_CERT", file("cert")), ("CLIENT_TLS_KEY", file("key"))]
}
