//! Calls that must not be made twice: an intent is kept before, a receipt after (E8).

use std::future::Future;

use jiff::Timestamp;

use crate::Failure;

/// That something was begun which cannot be repeated without harm, such as the creation of a project or a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// What is done; one word per step and object, such as `create-project`.
    pub operation: String,
    /// What the other side is marked with, so that it can be found again when its answer is lost.
    pub nonce: String,
    /// When it was begun.
    pub at: Timestamp,
}

/// What is known of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<R> {
    /// It was never begun.
    Nothing,
    /// It was begun, and nobody knows how it ended.
    Open(Intent),
    /// It ended with this.
    Finished(R),
}

/// Whether something is there. Unknown never creates and never deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existence<T> {
    /// It is.
    Yes(T),
    /// It is not.
    No,
    /// That could not be found out.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// Where intents and receipts are kept: durable, and not with the side that is called.
pub trait Intents: Send + Sync {
    /// What is kept of a call that ended, such as an id.
    type Receipt: Send + Sync;

    /// What is known of `operation`.
    fn look(&self, operation: &str) -> impl Future<Output = Result<Record<Self::Receipt>, Failure>> + Send;

    /// Keeps that it begins. It must be durable when this returns.
    fn begin(&self, intent: &Intent) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Keeps how it ended, in the place of the intent.
    fn finish(
        &self,
        intent: &Intent,
        receipt: &Self::Receipt,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The call itself.
pub trait Creation: Send + Sync {
    /// What it gives.
    type Receipt: Send + Sync;

    /// Looks for what an earlier try has made, by the nonce or a natural key.
    fn find(&self, intent: &Intent)
    -> impl Future<Output = Result<Existence<Self::Receipt>, Failure>> + Send;

    /// Makes it, marked with the nonce.
    fn create(&self, intent: &Intent) -> impl Future<Output = Result<Self::Receipt, Failure>> + Send;
}

/// How a call that must not be made twice came out.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once<R> {
    /// It had been made before, and that was known.
    Known(R),
    /// It had been made before, and its answer had been lost.
    Found(R),
    /// It was made now.
    Made(R),
}

/// Makes a call at most once, over any number of tries, crashes and lost answers. `nonce` and `now` count only when
/// nothing was begun yet.
///
/// A failure leaves the intent open: the next try looks for what this one may have made before it calls again.
///
/// # Errors
/// Those of the call and of the store; [transient](crate::FailureClass::Transient) when it cannot be found out whether
/// an earlier try has succeeded.
pub async fn once<I, C>(
    intents: &I,
    creation: &C,
    operation: &str,
    nonce: impl FnOnce() -> String + Send,
    now: Timestamp,
) -> Result<Once<I::Receipt>, Failure>
where
    I: Intents,
    C: Creation<Receipt = I::Receipt>,
{
    let intent = match intents.look(operation).await? {
        Record::Finished(receipt) => return Ok(Once::Known(receipt)),
        Record::Open(intent) => {
            match creation.find(&intent).await? {
                Existence::Yes(receipt) => {
                    intents.finish(&intent, &receipt).await?;
                    return Ok(Once::Found(receipt));
                }
                Existence::No => {}
                Existence::Unknown { reason } => {
                    return Err(Failure::transient(format!(
                        "{operation} was begun at {}, and whether it succeeded cannot be found out: {reason}",
                        intent.at
                    )));
                }
            }
            intent
        }
        Record::Nothing => {
            let intent = Intent {
                operation: operation.to_owned(),
                nonce: nonce(),
                at: now,
            };
            intents.begin(&intent).await?;
            intent
        }
    };
    let receipt = creation.create(&intent).await?;
    intents.finish(&intent, &receipt).await?;
    Ok(Once::Made(receipt))
}

// === impl Once ===

impl<R> Once<R> {
    /// The receipt, however it was come by.
    pub fn receipt(&self) -> &R {
        match self {
            Self::Known(receipt) | Self::Found(receipt) | Self::Made(receipt) => receipt,
        }
    }
}
