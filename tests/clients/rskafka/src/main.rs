//! Runs one scenario of the client matrix with rskafka: `rskafka BOOTSTRAP SCENARIO key=value...`
//!
//! It prints JSON lines; an exit code other than 0 says that the scenario failed.
#![forbid(unsafe_code)]

mod records;

use std::{collections::HashMap, error::Error, str::FromStr, time::Duration};

use rskafka::client::{
    Client, ClientBuilder,
    partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling},
};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let mut words = std::env::args().skip(1);
    let (Some(bootstrap), Some(name)) = (words.next(), words.next()) else {
        return Err("usage: rskafka BOOTSTRAP produce|read|group|churn key=value...".into());
    };
    let scenario = Scenario {
        bootstrap,
        arguments: words
            .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect(),
    };
    match name.as_str() {
        "produce" => scenario.produce().await,
        "read" => {
            let seconds = scenario.number("timeout", 60)?;
            tokio::time::timeout(Duration::from_secs(seconds), scenario.read()).await?
        }
        "group" | "churn" => {
            print(&json!({"cannot": "rskafka knows no groups"}));
            Ok(())
        }
        other => Err(format!("`{other}` is not a scenario").into()),
    }
}

/// What the command line asks for.
struct Scenario {
    bootstrap: String,
    arguments: HashMap<String, String>,
}

impl Scenario {
    fn text<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.arguments.get(name).map_or(otherwise, String::as_str)
    }

    fn number<N: FromStr>(&self, name: &str, otherwise: N) -> Result<N, N::Err> {
        self.arguments.get(name).map_or(Ok(otherwise), |value| value.parse())
    }

    async fn client(&self) -> Result<Client, Box<dyn Error>> {
        Ok(ClientBuilder::new(vec![self.bootstrap.clone()]).build().await?)
    }

    async fn partition(&self, client: &Client, index: usize) -> Result<PartitionClient, Box<dyn Error>> {
        let topic = self.text("topic", "");
        Ok(client.partition_client(topic, i32::try_from(index)?, UnknownTopicHandling::Retry).await?)
    }

    /// Writes the seed's records, for each partition one batch and the big record in a batch of its own.
    async fn produce(&self) -> Outcome {
        let codec = match self.text("codec", "none") {
            "none" => Compression::NoCompression,
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            other => return Err(format!("codec `{other}` is not known").into()),
        };
        let (count, partitions) = (self.number("count", 0)?, self.number("partitions", 1)?);
        print(&json!({"shape_skipped": records::ONE_VALUE_PER_HEADER}));
        let client = self.client().await?;
        let mut produced = 0;
        for index in 0..partitions {
            let partition = self.partition(&client, index).await?;
            let batch: Vec<_> = (index..count)
                .step_by(partitions)
                .map(|i| records::record(self.text("seed", "0"), i))
                .collect::<Result<_, _>>()?;
            produced += batch.len();
            partition.produce(batch, codec).await?;
            if self.number("big", 0)? == 1 && count % partitions == index {
                produced += 1;
                partition.produce(vec![records::big(count)?], codec).await?;
            }
        }
        print(&json!({"produced": produced}));
        Ok(())
    }

    /// Reads every partition from its beginning to its end.
    async fn read(&self) -> Outcome {
        let (expected, partitions): (usize, usize) =
            (self.number("expect", 0)?, self.number("partitions", 1)?);
        print(&json!({"shape_skipped": records::ONE_VALUE_PER_HEADER}));
        let client = self.client().await?;
        let mut seen = 0;
        for index in 0..partitions {
            let partition = self.partition(&client, index).await?;
            let mut offset = partition.get_offset(OffsetAt::Earliest).await?;
            let end = partition.get_offset(OffsetAt::Latest).await?;
            while offset < end {
                let (fetched, _) = partition.fetch_records(offset, 1..FETCH_BYTES_MAX, 500).await?;
                for record in fetched {
                    offset = record.offset + 1;
                    seen += 1;
                    print(&records::shown(partition.partition(), &record));
                }
            }
        }
        if seen == expected {
            Ok(())
        } else {
            Err(format!("{seen} records came instead of {expected}").into())
        }
    }
}

fn print(line: &Value) {
    println!("{line}");
}

const FETCH_BYTES_MAX: i32 = 4 * 1024 * 1024;
