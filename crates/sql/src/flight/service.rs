//! The requests of Flight SQL.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoData, XdbcTypeInfoData};
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionCreatePreparedSubstraitPlanRequest, ActionEndSavepointRequest,
    ActionEndTransactionRequest, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas,
    CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementSubstraitPlan, CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt,
    SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse,
    IpcMessage, SchemaAsIpc, Ticket,
};
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::answer::{self, FlightStream};
use super::connection::Connection;
use super::{bind, capabilities, catalog, plain, status};
use crate::error::QueryError;
use crate::session::Session;
use crate::settings::Settings;

/// Answers the requests of all connections; what belongs to one of them comes with its requests.
pub(super) struct Service {
    sql_info: SqlInfoData,
    types: XdbcTypeInfoData,
    statement_timeout: Duration,
}

impl Service {
    pub(super) fn new(settings: &Settings) -> Result<Self, arrow_flight::error::FlightError> {
        Ok(Self {
            sql_info: capabilities::sql_info()?,
            types: capabilities::types()?,
            statement_timeout: settings.statement_timeout,
        })
    }

    fn rows(&self, answer: crate::session::Answer) -> Response<FlightStream> {
        Response::new(answer::send(answer, self.statement_timeout))
    }
}

type Info = Result<Response<FlightInfo>, Status>;
type Rows = Result<Response<FlightStream>, Status>;

#[async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<BoxStream<'static, Result<HandshakeResponse, Status>>>, Status> {
        // Drivers that were given a name and a password insist on a token.
        let payload = Bytes::from_static(TOKEN.as_bytes());
        let answer = HandshakeResponse { protocol_version: 0, payload };
        let mut response = Response::new(stream::iter([Ok(answer)]).boxed());
        response.metadata_mut().insert("authorization", MetadataValue::from_static(BEARER));
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Info {
        let session = session(&request)?;
        let prepared = session.prepare(&query.query).await.map_err(refused)?;
        let ticket = TicketStatementQuery { statement_handle: query.query.into() };
        info(&plain::schema(&prepared.schema), &ticket, request)
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, request: Request<Ticket>) -> Rows {
        let text = std::str::from_utf8(&ticket.statement_handle)
            .map_err(|_| Status::invalid_argument("the ticket holds no statement"))?;
        let answer = session(&request)?.execute(text).await.map_err(refused)?;
        Ok(self.rows(answer))
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let connection = connection(&request)?;
        let prepared = connection.session().prepare(&query.query).await.map_err(refused)?;
        let dataset_schema = encoded(&plain::schema(&prepared.schema))?;
        let parameter_schema = encoded(&bind::parameters(&prepared))?;
        let handle = connection.statements.lock().keep(prepared)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle,
            dataset_schema,
            parameter_schema,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        connection(&request)?.statements.lock().close(&query.prepared_statement_handle);
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let connection = Arc::clone(connection(&request)?);
        let handle = query.prepared_statement_handle;
        connection.statements.lock().find(&handle)?;
        let values = bind::values(request.into_inner()).await?;
        connection.statements.lock().bind(&handle, values)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Info {
        let held = connection(&request)?.statements.lock().find(&query.prepared_statement_handle)?;
        info(&plain::schema(&held.prepared.schema), &query, request)
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Rows {
        let connection = connection(&request)?;
        let held = connection.statements.lock().find(&query.prepared_statement_handle)?;
        let session = connection.session();
        let answer = session.execute_with(&held.prepared.sql, held.values).await.map_err(refused)?;
        Ok(self.rows(answer))
    }

    async fn do_put_statement_update(
        &self,
        query: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        run(&*session(&request)?, &query.query, None).await
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let connection = Arc::clone(connection(&request)?);
        let held = connection.statements.lock().find(&query.prepared_statement_handle)?;
        let values = bind::values(request.into_inner()).await?;
        run(&connection.session(), &held.prepared.sql, values.or(held.values)).await
    }

    async fn do_put_statement_ingest(
        &self,
        _command: CommandStatementIngest,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(Status::permission_denied("tables are read-only here: rows are written by Kafka's producers"))
    }

    // Transactions: there is nothing to commit, so nothing is kept of them.

    async fn do_action_begin_transaction(
        &self,
        _query: ActionBeginTransactionRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        Ok(ActionBeginTransactionResult { transaction_id: Bytes::from_static(b"read-committed") })
    }

    async fn do_action_end_transaction(
        &self,
        _query: ActionEndTransactionRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn do_action_begin_savepoint(
        &self,
        _query: ActionBeginSavepointRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        Err(Status::unimplemented("there are no savepoints: nothing can be rolled back"))
    }

    async fn do_action_end_savepoint(
        &self,
        _query: ActionEndSavepointRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Err(Status::unimplemented("there are no savepoints: nothing can be rolled back"))
    }

    async fn do_action_cancel_query(
        &self,
        _query: ActionCancelQueryRequest,
        _request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        Err(Status::unimplemented("a statement is cancelled by cancelling its DoGet"))
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let action = request.get_ref().r#type.as_str();
        if action != "CloseSession" {
            return Err(Status::unimplemented(format!("the action `{action}` is not supported")));
        }
        connection(&request)?.reset();
        let result = arrow_flight::Result { body: Bytes::from_static(SESSION_CLOSED) };
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }

    // Substrait

    async fn get_flight_info_substrait_plan(
        &self,
        _query: CommandStatementSubstraitPlan,
        _request: Request<FlightDescriptor>,
    ) -> Info {
        Err(no_substrait())
    }

    async fn do_put_substrait_plan(
        &self,
        _query: CommandStatementSubstraitPlan,
        _request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(no_substrait())
    }

    async fn do_action_create_prepared_substrait_plan(
        &self,
        _query: ActionCreatePreparedSubstraitPlanRequest,
        _request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        Err(no_substrait())
    }

    async fn do_exchange_fallback(
        &self,
        _request: Request<Streaming<FlightData>>,
    ) -> Result<Response<<Self as FlightService>::DoExchangeStream>, Status> {
        Err(Status::unimplemented("DoExchange has no meaning here"))
    }

    // Metadata: what GetFlightInfo is asked, the ticket asks again.

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&query.into_builder().schema(), &query, request)
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, request: Request<Ticket>) -> Rows {
        batch(catalog::catalogs(query, &*session(&request)?).await)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&query.clone().into_builder().schema(), &query, request)
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, request: Request<Ticket>) -> Rows {
        batch(catalog::schemas(query, &*session(&request)?).await)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&query.clone().into_builder().schema(), &query, request)
    }

    async fn do_get_tables(&self, query: CommandGetTables, request: Request<Ticket>) -> Rows {
        batch(catalog::tables(query, &*session(&request)?).await)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&query.into_builder().schema(), &query, request)
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _request: Request<Ticket>) -> Rows {
        batch(catalog::table_types(query))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&self.sql_info.schema(), &query, request)
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Request<Ticket>) -> Rows {
        batch(query.into_builder(&self.sql_info).build().map_err(status::of_flight))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&self.types.schema(), &query, request)
    }

    async fn do_get_xdbc_type_info(&self, query: CommandGetXdbcTypeInfo, _request: Request<Ticket>) -> Rows {
        batch(query.into_builder(&self.types).build().map_err(status::of_flight))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&catalog::primary_keys(), &query, request)
    }

    async fn do_get_primary_keys(&self, _query: CommandGetPrimaryKeys, _request: Request<Ticket>) -> Rows {
        batch(Ok(RecordBatch::new_empty(catalog::primary_keys())))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&catalog::foreign_keys(), &query, request)
    }

    async fn do_get_exported_keys(&self, _query: CommandGetExportedKeys, _request: Request<Ticket>) -> Rows {
        batch(Ok(RecordBatch::new_empty(catalog::foreign_keys())))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&catalog::foreign_keys(), &query, request)
    }

    async fn do_get_imported_keys(&self, _query: CommandGetImportedKeys, _request: Request<Ticket>) -> Rows {
        batch(Ok(RecordBatch::new_empty(catalog::foreign_keys())))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Info {
        info(&catalog::foreign_keys(), &query, request)
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        _request: Request<Ticket>,
    ) -> Rows {
        batch(Ok(RecordBatch::new_empty(catalog::foreign_keys())))
    }

    async fn get_flight_info_fallback(&self, cmd: Command, _request: Request<FlightDescriptor>) -> Info {
        Err(Status::unimplemented(format!("the command `{}` is not supported", cmd.type_url())))
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}

fn connection<T>(request: &Request<T>) -> Result<&Arc<Connection>, Status> {
    request.extensions().get().ok_or_else(|| status::internal("a request without its connection"))
}

fn session<T>(request: &Request<T>) -> Result<Arc<Session>, Status> {
    connection(request).map(|connection| connection.session())
}

/// Runs a statement that has no rows, such as `SET`. Those that change rows are refused when they are planned.
async fn run(
    session: &Session,
    text: &str,
    values: Option<datafusion::common::ParamValues>,
) -> Result<i64, Status> {
    let prepared = session.prepare(text).await.map_err(refused)?;
    if !prepared.schema.fields().is_empty() {
        return Err(Status::invalid_argument("the statement has rows: it is a query, and no update"));
    }
    let mut rows = session.execute_with(text, values).await.map_err(refused)?.rows;
    while rows.try_next().await.map_err(|error| refused(QueryError::from(error)))?.is_some() {}
    Ok(0)
}

/// The columns of an answer, and the ticket for it.
fn info<M: ProstMessageExt>(schema: &SchemaRef, ticket: &M, request: Request<FlightDescriptor>) -> Info {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema).map_err(|error| status::of_arrow(&error))?;
    let info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket));
    Ok(Response::new(info.with_descriptor(request.into_inner())))
}

fn batch(batch: Result<RecordBatch, Status>) -> Rows {
    batch.map(|batch| Response::new(answer::send_batch(batch)))
}

fn encoded(schema: &Schema) -> Result<Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    Ok(message.map_err(|error| status::of_arrow(&error))?.0)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn refused(error: QueryError) -> Status {
    status::of_query(&error)
}

fn no_substrait() -> Status {
    Status::unimplemented("plans are not understood: send SQL")
}

const TOKEN: &str = "anonymous";
const BEARER: &str = "Bearer anonymous";
/// A `CloseSessionResult` whose status is CLOSED.
const SESSION_CLOSED: &[u8] = &[0x08, 0x01];
