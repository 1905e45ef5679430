//! Several requests at once, within a bound.
//!
//! The futures are made, and boxed, before the first is polled. A stream that made them as it went would keep a closure
//! over borrowed items alive across awaits, and then nobody outside this crate could show that the whole is `Send`
//! (rust-lang/rust#102211).

use futures::future::BoxFuture;
use futures::stream::{self, BufferUnordered, Buffered, Iter, StreamExt as _};

type Futures<'a, T> = Iter<std::vec::IntoIter<BoxFuture<'a, T>>>;

/// The results of `work` on each item, as they come; at most `at_once` run at one time.
pub(crate) fn as_they_come<'a, I, T>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> BoxFuture<'a, T>,
) -> BufferUnordered<Futures<'a, T>> {
    let futures: Vec<_> = items.into_iter().map(work).collect();
    stream::iter(futures).buffer_unordered(at_once.max(1))
}

/// The results of `work` on each item, in the order of the items; at most `at_once` run at one time.
pub(crate) fn in_order<'a, I, T>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> BoxFuture<'a, T>,
) -> Buffered<Futures<'a, T>> {
    let futures: Vec<_> = items.into_iter().map(work).collect();
    stream::iter(futures).buffered(at_once.max(1))
}
