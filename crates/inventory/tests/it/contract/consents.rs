//! Consent: asked once for a plan, given once, used once; what waits for it goes on, or fails when nobody answers.

use std::time::Duration;

use evenkeel_core::{
    ComponentName, ConfigurationVersion, ConsentKind, ConsentNeeded, Doomed, ObjectRef, OperationState,
    OperationStateKind,
};
use evenkeel_inventory::{AuditFilter, ClaimedOperation, ConsentKey, Error, PageRequest, Question};

use crate::fixture::*;

/// How long is waited.
const DAY: i64 = 24 * 60 * 60;

fn doomed(count: usize) -> Vec<Doomed> {
    let one = |index| Doomed {
        object: ObjectRef {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name: format!("c{index:05}"),
        },
        uid: format!("u{index}"),
    };
    (0..count).map(one).collect()
}

fn needed(component: &ComponentName, count: usize) -> ConsentNeeded {
    ConsentNeeded {
        component: component.clone(),
        kind: ConsentKind::Deletions,
        deletions: doomed(count),
        of: 10,
    }
}

fn question(operation: &ClaimedOperation, count: usize) -> Question {
    Question {
        operation: operation.id.clone(),
        version: operation.version,
        needed: needed(&operation.component, count),
        within: Duration::from_secs(DAY.unsigned_abs()),
    }
}

fn waiting(reason: &str, deadline: jiff::Timestamp) -> OperationState {
    OperationState::Waiting {
        reason: reason.to_owned(),
        deadline,
    }
}

async fn begun<B: Backend>(fleet: &Fleet<B>, components: &[&str]) -> Vec<ClaimedOperation> {
    let id = fleet.cluster("c1", components).await;
    let operations: Vec<(&str, &[usize])> = components.iter().map(|name| (*name, &[][..])).collect();
    let plan = fleet.plan(&id, &operations).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    fleet.claims(8).await.operations
}

pub(crate) async fn a_consent_lets_the_operation_go_on<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let web = begun(&fleet, &["web"]).await.remove(0);
    let (id, store) = (web.cluster.clone(), &fleet.store);
    let asked = store.ask_consent(&question(&web, 7)).await.unwrap();
    assert_eq!((asked.deleted, asked.of, asked.until), (7, 10, fleet.after(DAY)));
    assert_eq!(asked.given_at, None);
    fleet.report(&web, waiting("consent", asked.until)).await;
    // Asked again, it is the same question with the same deadline.
    fleet.advance(60);
    let again = store.ask_consent(&question(&web, 7)).await.unwrap();
    assert_eq!(again, asked);
    let open = store.consents(&id).await.unwrap();
    assert_eq!(open, std::slice::from_ref(&asked));
    assert_eq!(open[0].deletions, doomed(7));

    // The run goes on past its own deadline, which was an hour after it began.
    fleet.advance(5 * 60 * 60);
    assert!(store.overdue_reconciliations(8).await.unwrap().is_empty());
    assert!(fleet.claims(8).await.operations.is_empty());
    let other = ConsentKey {
        version: ConfigurationVersion(9),
        ..asked.key.clone()
    };
    let error = store
        .give_consent(&id, &other, fleet.after(3_600))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let given = store
        .give_consent(&id, &asked.key, fleet.after(3_600))
        .await
        .unwrap();
    assert_eq!(given.given_at, Some(fleet.now()));
    let resumed = fleet.claim_one().await;
    assert_eq!(
        (resumed.id.clone(), resumed.attempt),
        (web.id.clone(), 1),
        "waiting cost no attempt"
    );
    assert_eq!(resumed.deadline, fleet.after(3_600), "there is time for it");
    assert!(store.overdue_reconciliations(8).await.unwrap().is_empty());
    let said = store.operation_timeline(&web.id).await.unwrap();
    assert!(
        said.iter()
            .any(|entry| entry.message.starts_with("consent was given")),
        "{said:?}"
    );
    let entries = store
        .audit_entries(&AuditFilter::default(), &PageRequest::first(10))
        .await
        .unwrap()
        .items;
    let entry = entries
        .iter()
        .find(|entry| entry.action == "cluster.consent")
        .unwrap();
    assert_eq!(entry.target, "cluster/c1");
    assert_eq!(entry.detail["planDigest"], asked.key.plan.to_string());

    // It covers what is left of the plan, and nothing else; and once used, nothing.
    let covers = |consents: &[evenkeel_inventory::Consent], needed: &ConsentNeeded| {
        consents.iter().any(|consent| consent.covers(web.version, needed))
    };
    let consents = store.consents(&id).await.unwrap();
    assert!(covers(&consents, &needed(&web.component, 7)) && covers(&consents, &needed(&web.component, 3)));
    assert!(!covers(&consents, &needed(&web.component, 8)));
    assert!(!consents[0].covers(ConfigurationVersion(2), &needed(&web.component, 7)));
    assert_eq!(store.use_consents(&id, &web.component).await.unwrap(), 1);
    assert_eq!(store.use_consents(&id, &web.component).await.unwrap(), 0);
    assert!(store.consents(&id).await.unwrap().is_empty());
    // The same plan once more is a new question.
    let anew = store.ask_consent(&question(&web, 7)).await.unwrap();
    assert_eq!((anew.given_at, anew.asked_at), (None, fleet.now()));
}

pub(crate) async fn without_an_answer_the_wait_fails<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let web = begun(&fleet, &["web"]).await.remove(0);
    let asked = fleet.store.ask_consent(&question(&web, 7)).await.unwrap();
    fleet
        .report(&web, waiting("consent to delete", asked.until))
        .await;
    fleet.advance(DAY - 1);
    assert!(fleet.claims(8).await.settled.is_empty());
    assert!(fleet.store.overdue_reconciliations(8).await.unwrap().is_empty());
    fleet.advance(2);
    let settled = fleet.claims(8).await.settled;
    assert_eq!(settled.len(), 1);
    assert_eq!(
        (settled[0].state, settled[0].open),
        (OperationStateKind::Failed, 0)
    );
    let operations = fleet.store.operations(&web.reconciliation).await.unwrap().items;
    let reason = operations[0].state.reason().unwrap();
    assert!(
        reason.contains("until the deadline") && reason.contains("consent to delete"),
        "{reason}"
    );
    // Consent that comes late counts for the next try.
    let given = fleet
        .store
        .give_consent(&web.cluster, &asked.key, fleet.after(60))
        .await
        .unwrap();
    assert!(given.covers(web.version, &needed(&web.component, 7)));
    let again = fleet.store.ask_consent(&question(&web, 7)).await.unwrap();
    assert_eq!(again.given_at, Some(fleet.now()), "it is not asked again");
}

pub(crate) async fn questions_that_nobody_needs_go<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let claimed = begun(&fleet, &["web", "db"]).await;
    let id = claimed[0].cluster.clone();
    let store = &fleet.store;
    for operation in &claimed {
        store.ask_consent(&question(operation, 7)).await.unwrap();
    }
    assert_eq!(store.consents(&id).await.unwrap().len(), 2);
    // The plan became another one: the old question is void, the other component's stays.
    let web = claimed
        .iter()
        .find(|operation| operation.component.as_str() == "web")
        .unwrap();
    let newer = store.ask_consent(&question(web, 8)).await.unwrap();
    let open = store.consents(&id).await.unwrap();
    let counts: Vec<(&str, u64)> = open
        .iter()
        .map(|consent| (consent.key.component.as_str(), consent.deleted))
        .collect();
    assert_eq!(counts, [("db", 7), ("web", 8)]);
    // Given ones stay beside a new question.
    store
        .give_consent(&id, &newer.key, fleet.after(60))
        .await
        .unwrap();
    store.ask_consent(&question(web, 9)).await.unwrap();
    assert_eq!(store.consents(&id).await.unwrap().len(), 3);
    // A new version makes those void whose operations it takes the place of; the others go on with what they asked.
    fleet.put(spec("c1", &["web", "db", "more"])).await;
    let db = claimed
        .iter()
        .find(|operation| operation.component.as_str() == "db")
        .unwrap();
    fleet.report(web, OperationState::Superseded).await;
    let open = store.consents(&id).await.unwrap();
    assert_eq!(open.len(), 1, "{open:?}");
    store
        .give_consent(&id, &open[0].key, fleet.after(60))
        .await
        .unwrap();
    fleet.report(db, OperationState::Superseded).await;
    assert!(store.consents(&id).await.unwrap().is_empty());
    let error = store
        .give_consent(&id, &newer.key, fleet.after(60))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let nobody = Question {
        operation: "nobody--00000000-0000-7000-8000-000000000001".parse().unwrap(),
        ..question(web, 1)
    };
    let error = store.ask_consent(&nobody).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    // A very large plan is kept in part, and named whole.
    let large = question(web, evenkeel_inventory::DELETIONS_KEPT + 1);
    let asked = store.ask_consent(&large).await.unwrap();
    assert_eq!(asked.deletions.len(), evenkeel_inventory::DELETIONS_KEPT);
    assert_eq!(asked.key.plan, large.needed.digest());
}

/// Consent that came while the operation was still running does not leave it waiting.
pub(crate) async fn a_consent_just_before_the_wait_counts<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let web = begun(&fleet, &["web"]).await.remove(0);
    let asked = fleet.store.ask_consent(&question(&web, 7)).await.unwrap();
    fleet
        .store
        .give_consent(&web.cluster, &asked.key, fleet.after(60))
        .await
        .unwrap();
    assert_eq!(fleet.store.resume_consented(8, fleet.after(60)).await.unwrap(), 0);
    fleet.report(&web, waiting("consent", asked.until)).await;
    let fleet = fleet.crash().await;
    assert_eq!(
        fleet.store.resume_consented(8, fleet.after(7_200)).await.unwrap(),
        1
    );
    assert_eq!(
        fleet.store.resume_consented(8, fleet.after(7_200)).await.unwrap(),
        0
    );
    let resumed = fleet.claim_one().await;
    assert_eq!((resumed.id, resumed.deadline), (web.id, fleet.after(7_200)));
}
