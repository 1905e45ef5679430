//! The API call that a task answers.
//!
//! What a call sets off is done later, by other tasks and maybe another process, so its id is handed on with the work:
//! the inventory keeps it beside the due time of the cluster that was changed, and with the run that follows.

tokio::task_local! {
    static CURRENT: Call;
}

/// A call and who made it.
#[derive(Clone)]
struct Call {
    id: String,
    actor: Option<String>,
}

/// Runs `answer` as the answer to the call with that id.
pub async fn scope<F: Future>(id: String, answer: F) -> F::Output {
    CURRENT.scope(Call { id, actor: None }, answer).await
}

/// The same for a caller who is known.
pub async fn scope_of<F: Future>(id: String, actor: String, answer: F) -> F::Output {
    let actor = Some(actor);
    CURRENT.scope(Call { id, actor }, answer).await
}

/// The id of the call that this task answers; none in a task that nobody waits for.
pub fn current() -> Option<String> {
    CURRENT.try_with(|call| call.id.clone()).ok()
}

/// Who made the call that this task answers, where he said so.
pub fn actor() -> Option<String> {
    CURRENT.try_with(|call| call.actor.clone()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_id_is_known_inside_and_not_outside() {
        assert_eq!(current(), None);
        let seen = scope("r-1".to_owned(), async {
            let inner = scope("r-2".to_owned(), async { current() }).await;
            (current(), inner)
        })
        .await;
        assert_eq!(seen, (Some("r-1".to_owned()), Some("r-2".to_owned())));
        assert_eq!(current(), None);
    }

    #[tokio::test]
    async fn who_calls_is_known_where_he_said_so() {
        let named = scope_of("r-1".to_owned(), "ann".to_owned(), async { (current(), actor()) }).await;
        assert_eq!(named, (Some("r-1".to_owned()), Some("ann".to_owned())));
        assert_eq!(scope("r-2".to_owned(), async { actor() }).await, None);
        assert_eq!(actor(), None);
    }
}
