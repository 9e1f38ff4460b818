//! `Fetch`: whole batches of several partitions, or a wait until there are enough of them.
//!
//! ```text
//! request -> begin (session) -> plan -> collect, wait, collect again … -> tell (session) -> answer
//! ```
//! All of it happens when the request is the oldest one of its connection that is not answered, so that requests of one
//! session that a client sends behind one another meet the session in their order. The log never loses what it
//! acknowledged, so no client can have diverged from it.

mod ahead;
mod answer;
mod collect;
mod plan;

use std::sync::Arc;

use kolumn_kafka_wire::messages::FetchRequest;
use tokio::time::Instant;

use self::collect::{Collected, FoundPartition, collect};
use self::plan::{Plan, Terms};
use crate::context::{Phase, Session, reached};
use crate::dispatch::{Answer, Head, Request, Started};
use crate::fetch_session::{Asked, Scope};
use crate::observer::CloseReason;
use crate::stats::Counted;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Started {
    // Until its turn comes a request is kept as it was sent: decoded it would take more than what is counted of it.
    let (session, request) = (Arc::clone(session), request.clone());
    Started::later(async move {
        let (terms, asked) = read(&session, &request)?;
        let head = request.head;
        drop(request);
        serve(&session, head, terms, asked).await
    })
}

fn read(session: &Session, request: &Request) -> Result<(Terms, Asked), CloseReason> {
    let message: FetchRequest<'_> = request.decode()?;
    let terms = Terms::new(session, request.head.version, &message);
    let asked = plan::asked(&terms, &message);
    Ok((terms, asked))
}

async fn serve(session: &Session, head: Head, terms: Terms, asked: Asked) -> Answer {
    let sessions = &session.context.fetch_sessions;
    let (scope, partitions) = match sessions.begin(asked, Instant::now().into_std()) {
        Ok(begun) => begun,
        Err(code) => return answer::refuse(head, code),
    };
    let plan = Arc::new(Plan::new(session, terms, partitions));
    let collected = wait(session, &scope, &plan).await?;
    ahead::read_ahead(session.store(), &plan, &collected);
    // From here to the answer nothing waits: what counts as told is told.
    let found = collected.partitions.iter().map(FoundPartition::outcome);
    match scope.tell(sessions, &plan.partitions, found, Instant::now().into_std()) {
        Ok(told) => answer::answer(head, &plan, collected, told),
        Err(code) => answer::refuse(head, code),
    }
}

/// Collects until there is enough, something is wrong, time is up, the broker drains or nobody needs the answer.
async fn wait(session: &Session, scope: &Scope, plan: &Arc<Plan>) -> Result<Collected, CloseReason> {
    let collected = collect_anywhere(session, plan).await?;
    if plan.is_satisfied(&collected) || Instant::now() >= plan.terms.deadline {
        return Ok(collected);
    }
    drop(collected);
    let _waiting = Counted::new(&session.context.counters.long_polls);
    let mut phase = session.context.phase.clone();
    let mut watch = session.store().watch(&plan.keys());
    let mut is_over = false;
    loop {
        // What was appended before the watch was registered is seen here, what comes later wakes.
        let collected = collect_anywhere(session, plan).await?;
        if is_over || plan.is_satisfied(&collected) {
            return Ok(collected);
        }
        // Who waits holds nothing but the plan.
        drop(collected);
        is_over = tokio::select! {
            () = watch.changed() => false,
            () = tokio::time::sleep_until(plan.terms.deadline) => true,
            () = reached(&mut phase, Phase::Draining) => true,
            () = scope.superseded() => true,
        };
    }
}

/// Collects at once where the index is in memory and partitions are few, else on a thread that may block.
async fn collect_anywhere(session: &Session, plan: &Arc<Plan>) -> Result<Collected, CloseReason> {
    if plan.partitions.len() <= PARTITIONS_INLINE_MAX
        && let Some(collected) = collect(session.store(), plan, false)
    {
        return Ok(collected);
    }
    let (store, plan) = (session.store().clone(), Arc::clone(plan));
    let collected = tokio::task::spawn_blocking(move || collect(&store, &plan, true)).await;
    let failed = |why: String| CloseReason::Answer(why);
    collected
        .map_err(|error| failed(error.to_string()))?
        .ok_or_else(|| failed("nothing was collected".to_owned()))
}

/// Partitions that are looked at without giving others their turn.
const PARTITIONS_INLINE_MAX: usize = 10_000;
