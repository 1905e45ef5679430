//! Work that many want at the same time and that is done once.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

use crate::Error;

/// How many flights are noted before those that nobody waits for any more are looked for.
const NOTED_MAX: usize = 1024;

type Landing<T> = Result<T, Arc<Error>>;
type Flight<T> = Shared<BoxFuture<'static, Landing<T>>>;
type Weak<T> = WeakShared<BoxFuture<'static, Landing<T>>>;

/// The work under way, by what it is for.
///
/// A flight is driven by those who wait for it: it goes on when the first of them gives up, and is dropped when all
/// have.
pub(crate) struct Flights<K, T>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T> fmt::Debug for Flights<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flights")
    }
}

impl<K: Clone + Eq + Hash, T: Clone> Flights<K, T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Joins the work under way for `key`, or begins it.
    ///
    /// # Errors
    /// What the work fails with, shared by all who waited.
    pub(crate) async fn join<F>(&self, key: K, work: impl FnOnce() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let flight = self.flight(&key, work);
        let landing = flight.clone().await;
        {
            let mut noted = self.lock();
            let is_this = noted
                .get(&key)
                .is_some_and(|weak| weak.upgrade().is_none_or(|other| other.ptr_eq(&flight)));
            if is_this {
                noted.remove(&key);
            }
        }
        landing.map_err(Error::Shared)
    }

    fn flight<F>(&self, key: &K, work: impl FnOnce() -> F) -> Flight<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut noted = self.lock();
        if let Some(flight) = noted.get(key).and_then(WeakShared::upgrade) {
            return flight;
        }
        if noted.len() >= NOTED_MAX {
            noted.retain(|_, weak| weak.upgrade().is_some());
        }
        let work = work();
        let flight = async move { work.await.map_err(Arc::new) }.boxed().shared();
        if let Some(weak) = flight.downgrade() {
            noted.insert(key.clone(), weak);
        }
        flight
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Weak<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn many_who_ask_make_one_flight_and_the_first_may_give_up() {
        let flights: Flights<&str, u32> = Flights::new();
        let begun = Arc::new(AtomicUsize::new(0));
        let (land, landed) = oneshot::channel::<u32>();
        let landed = Arc::new(Mutex::new(Some(landed)));
        let ask = || {
            let (begun, landed) = (Arc::clone(&begun), Arc::clone(&landed));
            flights.join("a", move || {
                begun.fetch_add(1, Ordering::Relaxed);
                let landed = landed.lock().unwrap().take();
                async move { Ok(landed.unwrap().await.unwrap()) }
            })
        };
        let mut first = Box::pin(ask());
        let mut second = Box::pin(ask());
        assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
        drop(first);
        let mut third = Box::pin(ask());
        assert!(futures::poll!(&mut third).is_pending());
        land.send(7).unwrap();
        let (second, third) = tokio::join!(second, third);
        assert_eq!((second.unwrap(), third.unwrap()), (7, 7));
        assert_eq!(begun.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn failures_are_shared_and_the_next_flight_is_new() {
        let flights: Flights<&str, u32> = Flights::new();
        let failing = || async { Err(Error::NoRemote) };
        let (a, b) = tokio::join!(flights.join("a", failing), flights.join("a", failing));
        assert!(matches!((a, b), (Err(Error::Shared(_)), Err(Error::Shared(_)))));
        assert_eq!(flights.join("a", || async { Ok(7) }).await.unwrap(), 7);
        assert!(flights.lock().is_empty());
    }
}
