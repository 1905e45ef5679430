//! Writes that come one by one and are done together: while one transaction runs, the next ones gather.

use std::fmt;
use std::sync::Arc;

use evenkeel_telemetry::CancellationToken;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many writes may wait; whoever comes then waits for a place.
const WAITING_MAX: usize = 1_024;
/// How many writes go into one transaction.
const TOGETHER_MAX: usize = 256;

/// Nobody writes together any more, since the process is ending: write alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process is ending")]
pub(crate) struct Ending;

type Waiting<T, R> = (T, oneshot::Sender<R>);

/// Where single writes of one kind are handed in.
pub(crate) struct Batch<T, R> {
    sender: mpsc::Sender<Waiting<T, R>>,
    receiver: Arc<Mutex<mpsc::Receiver<Waiting<T, R>>>>,
}

impl<T, R> fmt::Debug for Batch<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

impl<T: Send, R: Send> Batch<T, R> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self {
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
        }
    }

    /// Hands one write in and waits for its answer.
    ///
    /// # Errors
    /// [`Ending`] when nobody writes any more.
    pub(crate) async fn write(&self, item: T) -> Result<R, Ending> {
        let (answer, answered) = oneshot::channel();
        self.sender.send((item, answer)).await.map_err(|_| Ending)?;
        answered.await.map_err(|_| Ending)
    }

    /// Writes what is handed in until `stop`, then what is left. `write` answers in the order of its items.
    pub(crate) async fn serve<Fut>(&self, stop: CancellationToken, write: impl Fn(Vec<T>) -> Fut)
    where
        Fut: Future<Output = Vec<R>>,
    {
        let mut receiver = self.receiver.lock().await;
        loop {
            let mut waiting = Vec::new();
            let received = tokio::select! {
                biased;
                () = stop.cancelled(), if !receiver.is_closed() => {
                    receiver.close();
                    continue;
                }
                received = receiver.recv_many(&mut waiting, TOGETHER_MAX) => received,
            };
            if received == 0 {
                return;
            }
            let (items, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            for (result, answer) in write(items).await.into_iter().zip(answers) {
                // Whoever gave up waiting has no use for the answer.
                let _ = answer.send(result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn whoever_comes_after_the_end_is_told() {
        let batch: Batch<u32, u32> = Batch::new();
        let stop = CancellationToken::new();
        stop.cancel();
        let waiting = batch.write(1);
        tokio::pin!(waiting);
        assert!(
            futures::poll!(&mut waiting).is_pending(),
            "it is handed in before the end"
        );
        batch
            .serve(stop, |items| async move {
                items.into_iter().map(|item| item + 1).collect()
            })
            .await;
        assert_eq!(waiting.await, Ok(2));
        assert_eq!(batch.write(1).await, Err(Ending));
    }

    #[tokio::test]
    async fn what_waits_is_written_together() {
        let batch: Batch<u32, u32> = Batch::new();
        let calls = AtomicUsize::new(0);
        let stop = CancellationToken::new();
        let serving = batch.serve(stop.clone(), |items| {
            calls.fetch_add(1, Ordering::Relaxed);
            async move { items.into_iter().map(|item| item * 2).collect() }
        });
        let writing = async {
            let answers = join_all((0..300).map(|item| batch.write(item))).await;
            stop.cancel();
            answers
        };
        let ((), answers) = tokio::join!(serving, writing);
        let doubled: Vec<_> = (0..300).map(|item| Ok(item * 2)).collect();
        assert_eq!(answers, doubled);
        assert!(calls.load(Ordering::Relaxed) < 10);
    }
}
