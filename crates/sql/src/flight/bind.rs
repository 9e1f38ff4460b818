//! Prepared statements of a connection, and the values that are bound to their parameters.

use std::collections::HashMap;

use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ParamValues, ScalarValue};
use futures::{Stream, StreamExt};
use tonic::Status;

use super::status;
use crate::session::Prepared;

/// The statements that a client has prepared and not closed.
#[derive(Debug, Default)]
pub(super) struct Statements {
    held: HashMap<Bytes, Held>,
    next: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) prepared: Prepared,
    pub(super) values: Option<ParamValues>,
}

impl Statements {
    /// Keeps a statement, and names it. When there are too many, the client is told: to drop one that it still uses would be
    /// found out much later.
    pub(super) fn keep(&mut self, prepared: Prepared) -> Result<Bytes, Status> {
        let held_len: usize = self.held.values().map(|held| held.prepared.sql.len()).sum();
        if self.held.len() >= STATEMENTS_MAX || held_len + prepared.sql.len() > STATEMENTS_LEN_MAX {
            return Err(Status::resource_exhausted(format!(
                "the connection has {} prepared statements; close some of them",
                self.held.len()
            )));
        }
        self.next += 1;
        let handle = Bytes::from(self.next.to_string());
        self.held.insert(handle.clone(), Held { prepared, values: None });
        Ok(handle)
    }

    /// The statement of this name.
    pub(super) fn find(&self, handle: &[u8]) -> Result<Held, Status> {
        self.held.get(handle).cloned().ok_or_else(unknown)
    }

    /// Binds values to the parameters of a statement, in the place of those bound before.
    pub(super) fn bind(&mut self, handle: &[u8], values: Option<ParamValues>) -> Result<(), Status> {
        self.held.get_mut(handle).ok_or_else(unknown)?.values = values;
        Ok(())
    }

    /// Forgets a statement, if it is known.
    pub(super) fn close(&mut self, handle: &[u8]) {
        self.held.remove(handle);
    }
}

/// The parameters of a statement as columns: `$1`, `$2`, … A type that cannot be told is null's.
pub(super) fn parameters(prepared: &Prepared) -> Schema {
    let fields = prepared.parameters.iter().enumerate().map(|(i, data_type)| {
        Field::new(format!("${}", i + 1), data_type.clone().unwrap_or(DataType::Null), true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Reads the values for one run of a statement: by position, whatever the columns are called. `None`, if there are none.
pub(super) async fn values<S>(data: S) -> Result<Option<ParamValues>, Status>
where
    S: Stream<Item = Result<FlightData, Status>> + Send + 'static,
{
    let mut left = VALUES_LEN_MAX;
    let data = data.map(move |message| {
        let message = message.map_err(|error| FlightError::Tonic(Box::new(error)))?;
        let len = message.data_header.len() + message.data_body.len();
        left = left.checked_sub(len).ok_or_else(|| {
            let text = format!("the parameters are longer than {VALUES_LEN_MAX} bytes");
            FlightError::Tonic(Box::new(Status::resource_exhausted(text)))
        })?;
        Ok(message)
    });
    let mut batches = FlightRecordBatchStream::new_from_flight_data(data);
    let mut values = None;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| match error {
            FlightError::Tonic(status) => *status,
            other => Status::invalid_argument(format!("the parameters cannot be read: {other}")),
        })?;
        match batch.num_rows() {
            0 => {}
            1 if values.is_none() => {
                let columns = batch.columns().iter();
                let row = columns.map(|column| ScalarValue::try_from_array(column, 0));
                values = Some(row.collect::<Result<Vec<_>, _>>().map_err(status::internal)?);
            }
            _ => return Err(Status::invalid_argument("a query takes one row of parameters at a time")),
        }
    }
    Ok(values.filter(|values| !values.is_empty()).map(ParamValues::from))
}

fn unknown() -> Status {
    Status::not_found("no such prepared statement: it was closed, or belongs to another connection")
}

const STATEMENTS_MAX: usize = 64;
const STATEMENTS_LEN_MAX: usize = 4 << 20;
const VALUES_LEN_MAX: usize = 4 << 20;
