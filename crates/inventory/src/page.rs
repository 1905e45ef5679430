//! Lists in pages: a page begins after the last key of the one before, never at an offset.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The most rows of one page.
pub const PAGE_MAX: u32 = 500;

/// Where a page ended. Opaque to callers, and safe to hand out: it holds a name or an id, no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Cursor {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Which page is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The `next` of the page before; none for the first.
    pub after: Option<Cursor>,
    /// The most rows wanted, cut to 1 to [`PAGE_MAX`].
    pub limit: u32,
}

impl PageRequest {
    /// The first page of at most `limit` rows.
    pub fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }

    /// The page that follows `cursor`.
    pub fn after(cursor: Cursor, limit: u32) -> Self {
        Self {
            after: Some(cursor),
            limit,
        }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.clamp(1, PAGE_MAX)
    }
}

impl PageRequest {
    /// The cursor of a list of texts: the text after which the page begins. Ours hold no NUL, and what follows one in
    /// another's does not matter.
    pub(crate) fn text_cursor(&self) -> Option<&str> {
        let cursor = self.after.as_ref()?;
        cursor.0.split('\0').next()
    }

    /// The cursor of a list that counts down: the number before which the page begins.
    pub(crate) fn number_cursor(&self) -> Result<i64, Error> {
        match &self.after {
            None => Ok(i64::MAX),
            Some(cursor) => cursor.0.parse().map_err(|_| Error::not_found("page", cursor)),
        }
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::first(PAGE_MAX)
    }
}

/// A row that could not be read. The rest of its page is there.
#[derive(Debug)]
pub struct RowFailure {
    /// The row's key: a cluster's or a run's id.
    pub row: String,
    /// Why.
    pub error: Error,
}

/// Some rows of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The rows, in the list's order.
    pub items: Vec<T>,
    /// The rows of this page that could not be read.
    pub failed: Vec<RowFailure>,
    /// Where the next page begins; none when this is the last.
    pub next: Option<Cursor>,
}

impl<T> Default for Page<T> {
    /// The last page of an empty list.
    fn default() -> Self {
        Self {
            items: Vec::new(),
            failed: Vec::new(),
            next: None,
        }
    }
}

impl<T> Page<T> {
    /// A page from one row more than it holds; `read` gives a row's cursor, its key, and the row itself.
    pub(crate) fn collect<R>(
        rows: &[R],
        limit: u32,
        mut read: impl FnMut(&R) -> (Cursor, String, Result<T, Error>),
    ) -> Self {
        let limit = limit as usize;
        let mut page = Self {
            items: Vec::with_capacity(rows.len().min(limit)),
            failed: Vec::new(),
            next: None,
        };
        let mut last = None;
        for row in rows.iter().take(limit) {
            let (cursor, row, item) = read(row);
            last = Some(cursor);
            match item {
                Ok(item) => page.items.push(item),
                Err(error) => page.failed.push(RowFailure { row, error }),
            }
        }
        if rows.len() > limit {
            page.next = last;
        }
        page
    }
}
