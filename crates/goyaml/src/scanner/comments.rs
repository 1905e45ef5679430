//! What a scanner does with comments: nothing when values are read, all of go-yaml v3's care when documents are
//! rewritten. Which of the two is known when the program is compiled, so that the first costs nothing.

use super::{Mark, Scanner, Token};
use crate::Error;
pub(crate) use kept::Kept;

mod kept;

/// What becomes of comments, from the scanner, which finds them, to the parser, which hands them out with its events.
pub(crate) trait Comments: Default {
    /// Whether comments are kept; what is kept is read as go-yaml v3 reads, the rest as v2.
    const KEPT: bool;
    /// So many tokens must be known before the first is handed out.
    const LOOKAHEAD: usize;
    /// What an event carries of them.
    type Attached: std::fmt::Debug + Default;

    /// The comment on the line of what was just scanned, which began at `of`.
    fn scan_line(scanner: &mut Scanner<'_, Self>, of: Mark) -> Result<(), Error>;

    /// Comments before the next token, blanks before them are read; `scan_mark` is where the white space began.
    fn scan_block(scanner: &mut Scanner<'_, Self>, scan_mark: Mark) -> Result<(), Error>;

    /// Where the block of this indentation ends: `mark`, or before comments that are no longer its own.
    fn block_end(&self, mark: &mut Mark, indent: isize);

    /// This token is the next: the comments before it are due.
    fn unfold(&mut self, token: &Token<'_>);

    /// How much of a comment before the next node is due.
    fn head_length(&self) -> usize;

    /// The first `length` bytes of the comment before a node are about the item that the node begins, not about its
    /// first entry.
    fn split_stem(&mut self, length: usize);

    /// The comment of an item whose first entry begins now.
    fn take_stem(&mut self) -> Self::Attached;

    /// The part of the comment at the top that is about the document.
    fn take_document_head(&mut self) -> Self::Attached;

    /// All comments that are due.
    fn take(&mut self) -> Self::Attached;
}

/// Comments are white space.
#[derive(Debug, Default)]
pub(crate) struct Skipped;

impl Comments for Skipped {
    const KEPT: bool = false;
    const LOOKAHEAD: usize = 1;
    type Attached = ();

    #[inline]
    fn scan_line(_: &mut Scanner<'_, Self>, _: Mark) -> Result<(), Error> {
        Ok(())
    }

    #[inline]
    fn scan_block(scanner: &mut Scanner<'_, Self>, _: Mark) -> Result<(), Error> {
        if scanner.reader.byte(0) == b'#' {
            scanner.reader.skip_to_line_end()?;
        }
        Ok(())
    }

    #[inline]
    fn block_end(&self, _: &mut Mark, _: isize) {}

    #[inline]
    fn unfold(&mut self, _: &Token<'_>) {}

    #[inline]
    fn head_length(&self) -> usize {
        0
    }

    #[inline]
    fn split_stem(&mut self, _: usize) {}

    #[inline]
    fn take_stem(&mut self) {}

    #[inline]
    fn take_document_head(&mut self) {}

    #[inline]
    fn take(&mut self) {}
}
