//! Rows on their way to a client: encoded one message at a time, as fast as it reads, and no longer than it may take.

use std::pin::{Pin, pin};
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use datafusion::arrow::array::{Array, AsArray, OffsetSizeTrait, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use futures::future::{Either, select};
use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tonic::Status;

use super::{plain, status};
use crate::error::QueryError;
use crate::session::Answer;

/// What `DoGet` answers with.
pub(super) type FlightStream = Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send>>;

/// Sends an answer. At most two messages wait for the client. The statement is cancelled when the stream is dropped, and
/// when the client has not taken all of it in time: one that stops reading must not keep its snapshot for ever.
pub(super) fn send(answer: Answer, within: Duration) -> FlightStream {
    let (sender, receiver) = mpsc::channel(1);
    let pump = tokio::spawn(async move {
        let in_time = tokio::time::timeout(within, pump(answer, sender)).await;
        in_time.unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(format!(
                "the answer was not read to its end within {} ms",
                within.as_millis()
            )))
        })
    });
    Box::pin(stream::unfold(Some((receiver, pump)), |state| async move {
        let (mut receiver, pump) = state?;
        if let Some(data) = receiver.recv().await {
            return Some((Ok(data), Some((receiver, pump))));
        }
        match pump.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(status::internal(error)), None)),
        }
    }))
}

/// Sends rows that are there already.
pub(super) fn send_batch(batch: RecordBatch) -> FlightStream {
    let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
    Box::pin(encoder.build(stream::iter([Ok(batch)])).map(|data| data.map_err(status::of_flight)))
}

async fn pump(answer: Answer, sender: mpsc::Sender<FlightData>) -> Result<(), Status> {
    let schema = plain::schema(&answer.schema);
    let told = schema.clone();
    let batches = answer.rows.map(move |batch| {
        let batch = batch.map_err(of_datafusion)?;
        plain::batch(&batch, &told).map_err(FlightError::Arrow)
    });
    let pieces = batches.flat_map(|batch| match batch {
        Ok(batch) => stream::iter(Pieces::of(batch).map(Ok)).left_stream(),
        Err(error) => stream::iter([Err(error)]).right_stream(),
    });
    let mut encoder = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .with_dictionary_handling(DictionaryHandling::Resend)
        .with_max_flight_data_size(usize::MAX) // the pieces are small enough
        .build(pieces);
    loop {
        let data = match select(pin!(sender.closed()), encoder.next()).await {
            Either::Left(_) | Either::Right((None, _)) => return Ok(()),
            Either::Right((Some(data), _)) => data.map_err(status::of_flight)?,
        };
        if sender.send(data).await.is_err() {
            return Ok(());
        }
    }
}

fn of_datafusion(error: DataFusionError) -> FlightError {
    FlightError::Tonic(Box::new(status::of_query(&QueryError::from(error))))
}

/// A batch in halves of halves, until each fits a message or is one row. The encoder's own splitting cuts at equal numbers of
/// rows, and encodes all of them at once.
struct Pieces {
    rest: Vec<RecordBatch>,
}

impl Pieces {
    fn of(batch: RecordBatch) -> Self {
        Self { rest: vec![batch] }
    }
}

impl Iterator for Pieces {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        loop {
            let batch = self.rest.pop()?;
            let rows = batch.num_rows();
            let len: usize = batch.columns().iter().map(|column| data_len(column)).sum();
            if rows <= 1 || len <= PIECE_LEN_MAX {
                return Some(batch);
            }
            let half = rows / 2;
            self.rest.push(batch.slice(half, rows - half));
            self.rest.push(batch.slice(0, half));
        }
    }
}

/// The bytes of the rows that an array shows, without those that its slice left out.
fn data_len(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8 => spanned(array.as_string::<i32>().value_offsets()).1,
        DataType::Binary => spanned(array.as_binary::<i32>().value_offsets()).1,
        DataType::LargeUtf8 => spanned(array.as_string::<i64>().value_offsets()).1,
        DataType::LargeBinary => spanned(array.as_binary::<i64>().value_offsets()).1,
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (first, len) = spanned(list.value_offsets());
            data_len(&list.values().slice(first, len))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (first, len) = spanned(list.value_offsets());
            data_len(&list.values().slice(first, len))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| data_len(column)).sum(),
        other => other.primitive_width().unwrap_or(1) * array.len(),
    }
}

/// Where the values between the first and the last offset begin, and how many they are.
fn spanned<O: OffsetSizeTrait>(offsets: &[O]) -> (usize, usize) {
    let first = offsets.first().map_or(0, |first| first.as_usize());
    let end = offsets.last().map_or(0, |last| last.as_usize());
    (first, end.saturating_sub(first))
}

/// Clients refuse messages of 4 MiB and more unless they are told otherwise; there is some framing besides.
const PIECE_LEN_MAX: usize = 2 << 20;
