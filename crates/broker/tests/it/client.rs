//! A client that says exactly what a test wants said.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use kolumn_kafka_wire::messages::{
    CreateTopicsRequest, FetchRequest, FetchResponse, InitProducerIdRequest, MetadataRequest, ProduceRequest,
    RequestHeader, ResponseHeader,
    create_topics_request::CreatableTopic,
    fetch_request::{FetchPartition, FetchTopic},
    fetch_response::PartitionData,
    metadata_request::MetadataRequestTopic,
    produce_request::{PartitionProduceData, TopicProduceData},
    produce_response::PartitionProduceResponse,
};
use kolumn_kafka_wire::records::BatchBuilder;
use kolumn_kafka_wire::{
    ApiKey, Array, ErrorCode, Message, Records, RequestMessage, Str, Uuid, encode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than anything that goes well takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    next_correlation: i32,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the broker accepts");
        Self { stream, next_correlation: 100 }
    }

    /// Sends a request and reads its response.
    pub(crate) async fn call<'a, R: RequestMessage<'a>>(
        &mut self,
        version: i16,
        request: &R,
    ) -> R::Response<'static> {
        let id = self.send(version, request).await;
        self.receive::<R>(version, id).await.expect("a response")
    }

    /// Sends a request; returns its correlation id.
    pub(crate) async fn send<'a, R: RequestMessage<'a>>(&mut self, version: i16, request: &R) -> i32 {
        self.next_correlation += 1;
        let frame = frame(self.next_correlation, version, request);
        self.send_bytes(&frame).await;
        self.next_correlation
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the broker reads");
    }

    /// Reads the response to the request with this correlation id.
    pub(crate) async fn receive<'a, R: RequestMessage<'a>>(
        &mut self,
        version: i16,
        correlation_id: i32,
    ) -> io::Result<R::Response<'static>> {
        let (received, response) = self.receive_any::<R>(version).await?;
        assert_eq!(received, correlation_id, "responses come in the order of requests");
        Ok(response)
    }

    /// Reads the next response, whichever request it answers.
    pub(crate) async fn receive_any<'a, R: RequestMessage<'a>>(
        &mut self,
        version: i16,
    ) -> io::Result<(i32, R::Response<'static>)> {
        let frame =
            tokio::time::timeout(PATIENCE, self.receive_frame()).await.expect("a response in time")?;
        // Responses borrow from their frame; a test may leak a few.
        let frame: &'static Bytes = Box::leak(Box::new(frame));
        let mut reader = kolumn_kafka_wire::Reader::new(frame);
        let header_version = R::API_KEY.response_header_version(version);
        let header = <ResponseHeader<'_> as Message>::read(&mut reader, header_version).expect("a header");
        let body: &'static Bytes = Box::leak(Box::new(frame.slice(reader.position()..)));
        let response = <R::Response<'static> as Message>::decode_shared(body, version).expect("a response");
        Ok((header.correlation_id, response))
    }

    pub(crate) async fn receive_frame(&mut self) -> io::Result<Bytes> {
        let len = self.stream.read_i32().await?;
        let mut frame = vec![0; usize::try_from(len).expect("a length")];
        self.stream.read_exact(&mut frame).await?;
        Ok(frame.into())
    }

    /// Waits until the broker closes the connection, whatever it sends before.
    pub(crate) async fn expect_close(&mut self) {
        let closed = async {
            let mut sink = [0; 4096];
            while !matches!(self.stream.read(&mut sink).await, Ok(0) | Err(_)) {}
        };
        tokio::time::timeout(PATIENCE, closed).await.expect("the broker closes the connection");
    }

    pub(crate) async fn create_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create_topic_with(name, partitions, &[]).await
    }

    pub(crate) async fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&'static str, &'static str)],
    ) -> Uuid {
        // Tests write records of any time; retention must not take them away.
        let configs = configs.iter().chain(&[("retention.ms", "-1")]).map(|(name, value)| {
            kolumn_kafka_wire::messages::create_topics_request::CreatableTopicConfig {
                name: Str::from(*name),
                value: Some(Str::from(*value)),
                ..Default::default()
            }
        });
        let topic = CreatableTopic {
            name: Str::from(name.to_owned()),
            num_partitions: partitions,
            replication_factor: -1,
            configs: configs.collect::<Vec<_>>().into(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic].into(), ..CreateTopicsRequest::default() };
        let response = self.call(7, &request).await;
        let result = response.topics.iter().next().expect("a result");
        assert_eq!(result.error_code, ErrorCode::NONE, "{:?}", result.error_message);
        result.topic_id
    }

    /// Produces one batch with `acks=all`.
    pub(crate) async fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: Bytes,
    ) -> PartitionProduceResponse<'static> {
        let response = self.call(9, &produce_request(topic, partition, batch, -1)).await;
        let topic = response.responses.iter().next().expect("a topic");
        topic.partition_responses.iter().next().expect("a partition")
    }

    /// Fetches one partition without waiting.
    pub(crate) async fn fetch(&mut self, topic: &str, partition: i32, offset: i64) -> PartitionData<'static> {
        let response = self.call(12, &fetch_request(topic, partition, offset)).await;
        only_partition(&response)
    }

    pub(crate) async fn metadata(
        &mut self,
        names: &[&str],
        allow_auto_create: bool,
    ) -> kolumn_kafka_wire::messages::MetadataResponse<'static> {
        self.call(12, &metadata_request(names, allow_auto_create)).await
    }
}

pub(crate) fn frame<'a, R: RequestMessage<'a>>(correlation_id: i32, version: i16, request: &R) -> Vec<u8> {
    let encoded = encode_request(correlation_id, Some("test"), version, request).expect("a valid request");
    let mut frame = Vec::new();
    for part in encoded.into_parts() {
        match part {
            kolumn_kafka_wire::Part::Bytes(bytes) => frame.extend_from_slice(&bytes),
            deferred @ kolumn_kafka_wire::Part::Deferred { .. } => panic!("a request has {deferred:?}"),
        }
    }
    frame
}

/// A frame of a request whose body is given as bytes.
pub(crate) fn raw_frame(key: ApiKey, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let header = RequestHeader::new(key, version, correlation_id);
    let header = header.encode_to_bytes(key.request_header_version(version)).expect("a header");
    let len = i32::try_from(header.len() + body.len()).expect("short");
    [&len.to_be_bytes()[..], &header, body].concat()
}

pub(crate) fn batch(values: &[&str]) -> Bytes {
    batch_at(values, 1_700_000_000_000)
}

pub(crate) fn batch_at(values: &[&str], timestamp: i64) -> Bytes {
    build(BatchBuilder::new(), values, timestamp)
}

pub(crate) fn build(mut builder: BatchBuilder, values: &[&str], timestamp: i64) -> Bytes {
    for value in values {
        builder.append(Some(b"key"), Some(value.as_bytes()), [], timestamp).expect("a record");
    }
    builder.build().expect("a batch")
}

pub(crate) fn produce_request(
    topic: &str,
    partition: i32,
    batch: Bytes,
    acks: i16,
) -> ProduceRequest<'static> {
    let partition =
        PartitionProduceData { index: partition, records: Some(Records::from(batch)), ..Default::default() };
    let topic = TopicProduceData {
        name: Str::from(topic.to_owned()),
        partition_data: vec![partition].into(),
        ..Default::default()
    };
    ProduceRequest { acks, timeout_ms: 30_000, topic_data: vec![topic].into(), ..Default::default() }
}

pub(crate) fn fetch_request(topic: &str, partition: i32, offset: i64) -> FetchRequest<'static> {
    let partition = FetchPartition {
        partition,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic {
        topic: Str::from(topic.to_owned()),
        partitions: vec![partition].into(),
        ..FetchTopic::default()
    };
    FetchRequest { max_bytes: 50 << 20, topics: vec![topic].into(), ..FetchRequest::default() }
}

pub(crate) fn metadata_request(names: &[&str], allow_auto_create: bool) -> MetadataRequest<'static> {
    let topics = names.iter().map(|name| MetadataRequestTopic {
        name: Some(Str::from((*name).to_owned())),
        ..MetadataRequestTopic::default()
    });
    MetadataRequest {
        topics: Some(Array::from(topics.collect::<Vec<_>>())),
        allow_auto_topic_creation: allow_auto_create,
        ..MetadataRequest::default()
    }
}

/// What an idempotent producer without transactions asks.
pub(crate) fn init_producer_request() -> InitProducerIdRequest<'static> {
    InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() }
}

pub(crate) fn only_partition(response: &FetchResponse<'static>) -> PartitionData<'static> {
    let topic = response.responses.iter().next().expect("a topic");
    topic.partitions.iter().next().expect("a partition")
}

/// The bytes of a partition's records.
pub(crate) fn bytes(partition: &PartitionData<'static>) -> Bytes {
    partition.records.clone().and_then(Records::into_bytes).unwrap_or_default()
}

/// The values of the records, with their offsets.
pub(crate) fn values(partition: &PartitionData<'static>) -> Vec<(i64, String)> {
    let bytes = bytes(partition);
    let mut values = Vec::new();
    let mut inflater = kolumn_kafka_wire::records::Inflater::new();
    for batch in kolumn_kafka_wire::records::batches(&bytes) {
        let batch = batch.expect("a whole batch");
        let payload = batch.decompress(&mut inflater, 64 << 20).expect("a payload");
        for record in kolumn_kafka_wire::records::iter_records(payload, batch.record_count()) {
            let record = record.expect("a record");
            let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).expect("text");
            values.push((batch.base_offset() + i64::from(record.offset_delta), value));
        }
    }
    values
}
