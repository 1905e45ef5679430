//! What benches are told of the rows.

use crate::fixture::*;

pub(crate) async fn rows_are_counted<B: Database>() {
    let fleet = Fleet::<B>::new().await;
    let measure = async || fleet.backend.sql().row_measures().await.unwrap();
    let empty = measure().await;
    assert_eq!(empty.rows, 0);
    let cluster = fleet.cluster("c", &["web"]).await;
    let accepted = measure().await;
    assert!(accepted.rows > empty.rows, "{accepted:?}");
    let plan = fleet.plan(&cluster, &[("web", &[])]).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    fleet.succeed(&fleet.claim_one().await).await;
    let done = measure().await;
    assert!(done.rows > accepted.rows, "{done:?}");
    // PostgreSQL counts for the whole server alone.
    let written = [empty, accepted, done].map(|measures| measures.written);
    match written {
        [Some(empty), Some(accepted), Some(done)] => {
            assert!(empty < accepted && accepted < done, "{written:?}");
            assert_eq!(measure().await.written, Some(done), "measuring writes nothing");
        }
        _ => assert_eq!(written, [None; 3]),
    }
}
