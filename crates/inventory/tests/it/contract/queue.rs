use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{
    DueReason, ObjectChange, ObjectRef, OperationState, OperationStateKind, PlanAction, Strategy,
};
use evenkeel_inventory::{
    CheckNote, Error, Level, Signal, TIMELINE_ENTRIES_MAX, TIMELINE_MESSAGE_BYTES_MAX, TimelineEntry,
};
use tokio::task::JoinSet;

use crate::fixture::*;

pub(super) fn entry<B: Backend>(fleet: &Fleet<B>, message: impl Into<String>) -> TimelineEntry {
    TimelineEntry {
        at: fleet.now(),
        level: Level::Info,
        step: Some("apply".to_owned()),
        message: message.into(),
    }
}

pub(super) fn retrying<B: Backend>(fleet: &Fleet<B>, seconds: i64) -> OperationState {
    OperationState::Retrying {
        reason: "503".to_owned(),
        next_at: fleet.after(seconds),
    }
}

pub(crate) async fn dependencies_give_the_order<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["crds", "db", "web", "site"]).await;
    // site waits for web and db, which wait for crds.
    let plan = fleet
        .plan(
            &id,
            &[("site", &[1, 2]), ("web", &[3]), ("db", &[3]), ("crds", &[])],
        )
        .await;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap();
    let crds = fleet.claim_one().await;
    assert_eq!(
        (crds.component.as_str(), crds.attempt, crds.kind),
        ("crds", 1, Strategy::Install)
    );
    assert_eq!(
        (&crds.reconciliation, &crds.cluster, crds.cause.as_str()),
        (&run.id, &id, "it is new")
    );
    assert_eq!(
        (crds.due_reason, crds.deadline),
        (DueReason::Change, fleet.after(3_600))
    );
    assert_eq!(crds.lease.until, fleet.after(15));
    assert_eq!(fleet.succeed(&crds).await.open, 3);
    let mut two = fleet.claims(8).await.operations;
    assert_eq!(two.len(), 2);
    fleet.succeed(&two.remove(0)).await;
    assert!(
        fleet.claims(8).await.operations.is_empty(),
        "one of two is not both"
    );
    fleet.succeed(&two.remove(0)).await;
    let site = fleet.claim_one().await;
    let settled = fleet.succeed(&site).await;
    assert_eq!(
        (settled.open, settled.state, settled.component.as_str()),
        (0, OperationStateKind::Succeeded, "site")
    );
    let states: Vec<_> = fleet.store.operations(&run.id).await.unwrap().items;
    assert!(
        states
            .iter()
            .all(|item| item.state == OperationState::Succeeded && item.finished_at.is_some())
    );
    let order: Vec<_> = states.iter().map(|item| item.component.as_str()).collect();
    assert_eq!(order, ["site", "web", "db", "crds"], "as they were given");
}

pub(crate) async fn a_failure_skips_what_depends_on_it<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["db", "web", "site", "log"]).await;
    let plan = fleet
        .plan(&id, &[("db", &[]), ("web", &[0]), ("site", &[1]), ("log", &[])])
        .await;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap();
    let claimed = fleet.claims(8).await.operations;
    let db = claimed
        .iter()
        .find(|item| item.component.as_str() == "db")
        .unwrap();
    let log = claimed
        .iter()
        .find(|item| item.component.as_str() == "log")
        .unwrap();
    let settled = fleet.report(db, failed("chart is broken")).await;
    let mut skipped: Vec<_> = settled.skipped.iter().map(ToString::to_string).collect();
    skipped.sort();
    assert_eq!(
        (skipped, settled.open),
        (vec!["site".to_owned(), "web".to_owned()], 1)
    );
    fleet.succeed(log).await;
    let states: BTreeMap<_, _> = fleet
        .store
        .operations(&run.id)
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|item| (item.component.to_string(), item.state))
        .collect();
    assert_eq!(states["db"], failed("chart is broken"));
    assert_eq!(states["log"], OperationState::Succeeded);
    for name in ["web", "site"] {
        let reason = states[name].reason().unwrap();
        assert!(
            matches!(states[name], OperationState::Skipped { .. }) && reason.contains("\"db\""),
            "{reason}"
        );
    }
    // The same is seen from the cluster.
    let components = fleet.store.components(&id).await.unwrap().items;
    let web = components
        .iter()
        .find(|item| item.component.as_str() == "web")
        .unwrap();
    assert_eq!(web.operation.as_ref().unwrap().state, states["web"]);
    assert!(fleet.claims(8).await.operations.is_empty());
}

pub(crate) async fn nothing_is_claimed_twice<B: Backend>() {
    const CLUSTERS: usize = 40;
    const COMPONENTS: usize = 10;
    let fleet = Fleet::<B>::new().await;
    let names: Vec<_> = (0..COMPONENTS).map(|number| format!("x{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for number in 0..CLUSTERS {
        let id = fleet.cluster(&format!("c{number}"), &names).await;
        let operations: Vec<_> = names.iter().map(|name| (*name, &[][..])).collect();
        fleet
            .store
            .begin_reconciliation(fleet.plan(&id, &operations).await)
            .await
            .unwrap();
    }
    let mut claimers = JoinSet::new();
    for worker in 0..8_u32 {
        let store = fleet.store.clone();
        claimers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let request = evenkeel_inventory::ClaimRequest {
                    worker: format!("w{worker}"),
                    ..claim(1 + worker)
                };
                let claims = store.claim(&request).await.unwrap().operations;
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims.into_iter().map(|claimed| claimed.id));
            }
        });
    }
    let all: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    let distinct: HashSet<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(
        (all.len(), distinct.len()),
        (CLUSTERS * COMPONENTS, CLUSTERS * COMPONENTS)
    );
}

pub(crate) async fn only_the_table_is_allowed<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let run = fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let skipped = OperationState::Skipped {
        reason: "why not".to_owned(),
    };
    let error = fleet.store.report(report(&claimed, skipped)).await.unwrap_err();
    assert!(
        error.to_string().contains("from running to skipped: allowed are"),
        "{error}"
    );
    fleet.succeed(&claimed).await;
    for state in [OperationState::Pending, OperationState::Running, failed("x")] {
        let error = fleet.store.report(report(&claimed, state)).await.unwrap_err();
        assert!(matches!(error, Error::LeaseLost { .. }), "{error}");
    }
    let mut unknown = report(&claimed, OperationState::Succeeded);
    unknown.operation = evenkeel_core::OperationId::new(id, uuid::Uuid::nil());
    assert!(matches!(
        fleet.store.report(unknown).await,
        Err(Error::NotFound { .. })
    ));
    let operation = fleet.store.operations(&run.id).await.unwrap().items.remove(0);
    assert_eq!(operation.state, OperationState::Succeeded);
}

pub(crate) async fn a_retry_waits_for_its_time<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    fleet.report(&claimed, retrying(&fleet, 30)).await;
    let operation = fleet.store.operation(&claimed.id).await.unwrap();
    assert_eq!((operation.state, operation.lease), (retrying(&fleet, 30), None));
    let components = fleet.store.components(&id).await.unwrap().items;
    assert_eq!(
        components[0].operation.as_ref().unwrap().state,
        retrying(&fleet, 30)
    );
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty());
    assert_eq!(claims.next_at, Some(fleet.after(30)));
    fleet.advance(30);
    assert_eq!(fleet.claim_one().await.attempt, 2);
}

pub(crate) async fn a_wait_ends_at_its_deadline<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web", "site"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("site", &[0])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let waiting = OperationState::Waiting {
        reason: "consent".to_owned(),
        deadline: fleet.after(60),
    };
    assert_eq!(fleet.report(&claimed, waiting.clone()).await.open, 2);
    assert_eq!(fleet.store.operation(&claimed.id).await.unwrap().state, waiting);
    fleet.advance(59);
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty() && claims.settled.is_empty());
    fleet.advance(1);
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty());
    let [settled] = &claims.settled[..] else {
        panic!("{claims:?}")
    };
    assert_eq!((settled.state, settled.open), (OperationStateKind::Failed, 0));
    assert_eq!(settled.skipped[0].as_str(), "site");
    let state = fleet.store.operation(&claimed.id).await.unwrap().state;
    assert!(state.reason().unwrap().contains("consent"), "{state:?}");
}

pub(crate) async fn a_wait_is_resumed<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let error = fleet.store.resume(&claimed.id).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    let waiting = OperationState::Waiting {
        reason: "consent".to_owned(),
        deadline: fleet.after(60),
    };
    fleet.report(&claimed, waiting).await;
    let mut ready = fleet.store.signals().subscribe(Signal::OperationReady);
    fleet.store.resume(&claimed.id).await.unwrap();
    assert!(ready.changed().await);
    let again = fleet.claim_one().await;
    assert_eq!(
        (&again.id, again.attempt),
        (&claimed.id, 1),
        "waiting costs no attempt"
    );
    fleet.advance(60);
    assert_eq!(
        fleet.claims(8).await.operations.len(),
        1,
        "the old deadline no longer counts, the lease does"
    );
}

pub(crate) async fn giving_back_costs_no_attempt<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let mut last = fence(0);
    for _ in 0..3 {
        let claimed = fleet.claim_one().await;
        assert_eq!(claimed.attempt, 1);
        assert!(claimed.lease.fence > last);
        last = claimed.lease.fence;
        fleet.report(&claimed, OperationState::Pending).await;
        let operation = fleet.store.operation(&claimed.id).await.unwrap();
        assert_eq!(
            (operation.state, operation.lease),
            (OperationState::Pending, None)
        );
    }
}

pub(crate) async fn a_final_report_may_come_twice<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["db", "web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("db", &[]), ("web", &[0])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let mut last = report(&claimed, OperationState::Succeeded);
    last.timeline.push(entry(&fleet, "done"));
    fleet.store.report(last.clone()).await.unwrap();
    let again = fleet.store.report(last).await.unwrap();
    assert_eq!((again.state, again.open), (OperationStateKind::Succeeded, 1));
    assert_eq!(
        fleet.store.operation_timeline(&claimed.id).await.unwrap().len(),
        1
    );
    // And it freed what waits for it once, not twice.
    let web = fleet.claim_one().await;
    assert_eq!(web.component.as_str(), "web");
}

pub(crate) async fn one_refused_report_does_not_touch_the_others<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["a", "b", "c"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("a", &[]), ("b", &[]), ("c", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claims(8).await.operations;
    let mut reports: Vec<_> = claimed
        .iter()
        .map(|claim| report(claim, OperationState::Succeeded))
        .collect();
    reports[1].fence = fence(99);
    let answers = fleet.store.report_all(reports).await.unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(matches!(answers[1], Err(Error::LeaseLost { .. })));
    assert_eq!(
        fleet.store.operation(&claimed[1].id).await.unwrap().state,
        OperationState::Running
    );
    assert!(fleet.store.report_all(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn what_was_done_and_said_is_kept<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let change = |name: &str, action| ObjectChange {
        object: ObjectRef {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("apps".to_owned()),
            name: name.to_owned(),
        },
        action,
        at: fleet.now(),
    };
    let claimed = fleet.claim_one().await;
    assert!(
        fleet
            .store
            .operation_timeline(&claimed.id)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        fleet
            .store
            .operation_changes(&claimed.id)
            .await
            .unwrap()
            .is_empty()
    );
    let mut progress = report(&claimed, OperationState::Running);
    progress.changes.push(change("web", PlanAction::Create));
    progress.timeline.push(entry(&fleet, "created web"));
    assert_eq!(
        fleet.store.report(progress).await.unwrap().state,
        OperationStateKind::Running
    );
    let mut last = report(&claimed, OperationState::Succeeded);
    last.changes.push(change("old", PlanAction::Delete));
    last.timeline.push(entry(&fleet, "pruned old"));
    fleet.store.report(last).await.unwrap();
    let changes = fleet.store.operation_changes(&claimed.id).await.unwrap();
    assert_eq!(
        changes,
        [
            change("web", PlanAction::Create),
            change("old", PlanAction::Delete)
        ]
    );
    let said: Vec<_> = fleet.store.operation_timeline(&claimed.id).await.unwrap();
    assert_eq!(said, [entry(&fleet, "created web"), entry(&fleet, "pruned old")]);
    let unknown = evenkeel_core::OperationId::new(id, uuid::Uuid::nil());
    assert!(matches!(
        fleet.store.operation_timeline(&unknown).await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        fleet.store.operation_changes(&unknown).await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn a_timeline_is_bounded<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let say = |numbers: std::ops::Range<usize>| {
        let mut report = report(&claimed, OperationState::Running);
        report.timeline = numbers
            .map(|number| entry(&fleet, format!("line {number}")))
            .collect();
        let store = fleet.store.clone();
        async move { store.report(report).await.unwrap() }
    };
    for batch in 0..13 {
        say(batch * 100..(batch + 1) * 100).await;
    }
    say(1_300..1_301).await;
    let said = fleet.store.operation_timeline(&claimed.id).await.unwrap();
    assert_eq!(said.len(), TIMELINE_ENTRIES_MAX);
    assert_eq!(
        (said[0].message.as_str(), said[999].message.as_str()),
        ("line 301", "line 1300")
    );
    // One report alone may be too much, and one message.
    say(0..TIMELINE_ENTRIES_MAX + 7).await;
    let said = fleet.store.operation_timeline(&claimed.id).await.unwrap();
    assert_eq!(
        (said.len(), said[0].message.as_str()),
        (TIMELINE_ENTRIES_MAX, "line 7")
    );
    let mut long = report(&claimed, OperationState::Running);
    long.timeline
        .push(entry(&fleet, "ä".repeat(TIMELINE_MESSAGE_BYTES_MAX)));
    fleet.store.report(long).await.unwrap();
    let said = fleet.store.operation_timeline(&claimed.id).await.unwrap();
    let last = said.last().unwrap();
    assert!(last.message.len() <= TIMELINE_MESSAGE_BYTES_MAX + 3 && last.message.ends_with("ä…"));
}

pub(crate) async fn urgent_lanes_go_first_and_none_starves<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let begin = |name: &'static str, reason| {
        let fleet = &fleet;
        async move {
            let id = fleet.cluster(name, &["web"]).await;
            let mut plan = fleet.plan(&id, &[("web", &[])]).await;
            plan.reason = reason;
            plan.deadline = fleet.after(86_400);
            fleet.store.begin_reconciliation(plan).await.unwrap();
        }
    };
    begin("old-periodic", DueReason::Periodic).await;
    fleet.advance(4 * 3_600);
    for (name, reason) in [
        ("periodic", DueReason::Periodic),
        ("retry", DueReason::Retry),
        ("drift", DueReason::Drift),
        ("change", DueReason::Change),
    ] {
        begin(name, reason).await;
        fleet.advance(1);
    }
    let claims = fleet.claims(8).await.operations;
    let mut order = Vec::new();
    for claim in claims {
        order.push(
            fleet
                .store
                .cluster(&claim.cluster)
                .await
                .unwrap()
                .name
                .to_string(),
        );
    }
    assert_eq!(order, ["old-periodic", "change", "drift", "retry", "periodic"]);
}

pub(crate) async fn whoever_waits_is_woken<B: Backend>() {
    const SOON: Duration = Duration::from_secs(5);
    let fleet = Fleet::<B>::new().await;
    let store = fleet.store.clone();
    let mut due = store.signals().subscribe(Signal::ClusterDue);
    let mut changed = store.signals().subscribe(Signal::ClusterChanged);
    let mut ready = store.signals().subscribe(Signal::OperationReady);
    let mut settled = store.signals().subscribe(Signal::OperationSettled);
    let mut stop = store.signals().subscribe(Signal::OperationStop);
    macro_rules! woken {
        ($signal:ident) => {
            assert!(
                tokio::time::timeout(SOON, $signal.changed())
                    .await
                    .expect(stringify!($signal))
            );
        };
    }
    macro_rules! quiet {
        ($signal:ident) => {
            let waited = tokio::time::timeout(Duration::from_millis(1), $signal.changed()).await;
            assert!(waited.is_err() || !B::QUIET, stringify!($signal));
        };
    }
    // One that waits already, in a task of its own.
    let mut waiting = JoinSet::new();
    let (mut other, other_store) = (store.signals().subscribe(Signal::ClusterDue), Arc::clone(&store));
    waiting.spawn(async move {
        loop {
            assert!(other.changed().await);
            let due = other_store.due_clusters(8).await.unwrap().due.len();
            if due > 0 || B::QUIET {
                return due;
            }
        }
    });
    let id = fleet.cluster("c1", &["web"]).await;
    assert_eq!(
        tokio::time::timeout(SOON, waiting.join_next())
            .await
            .unwrap()
            .unwrap()
            .unwrap(),
        1
    );
    woken!(due);
    woken!(changed);
    fleet.put(spec("c1", &["web"])).await;
    quiet!(due);
    quiet!(changed);
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    woken!(ready);
    woken!(changed);
    let claimed = fleet.claim_one().await;
    quiet!(settled);
    fleet.report(&claimed, retrying(&fleet, 0)).await;
    woken!(ready);
    quiet!(settled);
    let claimed = fleet.claim_one().await;
    fleet.put(spec("c1", &["web", "db"])).await;
    woken!(due);
    let mut plan = fleet.plan(&id, &[("web", &[])]).await;
    plan.supersede = true;
    quiet!(stop);
    store.begin_reconciliation(plan).await.unwrap();
    woken!(stop);
    fleet.report(&claimed, OperationState::Superseded).await;
    woken!(settled);
    store.make_due(&id, fleet.now(), DueReason::Drift).await.unwrap();
    woken!(due);
    let note = CheckNote {
        cluster: id.clone(),
        stamp: store.cluster(&id).await.unwrap().status.stamp,
        checked_at: fleet.now(),
        next_due_at: fleet.after(1),
    };
    store.note_checks(&[note]).await.unwrap();
    quiet!(due);
}
