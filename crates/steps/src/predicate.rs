//! Named conditions over the snapshot, and their algebra.

use std::borrow::Cow;
use std::fmt;
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

/// A condition over the snapshot `S` that can be printed: `!deleting & (vault | git)`.
///
/// Combine with `&`, `|` and `!`. It decides which steps of a pass are selected, before anything outside is
/// touched; when it says no, [`Predicate::refusal`] says which named part is to blame.
///
/// ```
/// use evenkeel_steps::Predicate;
///
/// let even = Predicate::new("even", |n: &u32| n % 2 == 0);
/// let big = Predicate::new("big", |n: &u32| *n > 100);
/// let both = even & !big;
/// assert_eq!(both.to_string(), "even & !big");
/// assert_eq!(both.refusal(&102).as_deref(), Some("big is true"));
/// assert!(both.holds(&8));
/// ```
pub struct Predicate<S: ?Sized>(Arc<Expression<S>>);

type Test<S> = dyn Fn(&S) -> bool + Send + Sync;

enum Expression<S: ?Sized> {
    Named {
        name: Cow<'static, str>,
        test: Box<Test<S>>,
    },
    And(Predicate<S>, Predicate<S>),
    Or(Predicate<S>, Predicate<S>),
    Not(Predicate<S>),
}

impl<S: ?Sized> Predicate<S> {
    /// A condition called `name`.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        test: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Expression::Named {
            name: name.into(),
            test: Box::new(test),
        }))
    }

    /// Whether the condition holds for `state`.
    pub fn holds(&self, state: &S) -> bool {
        match &*self.0 {
            Expression::Named { test, .. } => test(state),
            Expression::And(a, b) => a.holds(state) && b.holds(state),
            Expression::Or(a, b) => a.holds(state) || b.holds(state),
            Expression::Not(a) => !a.holds(state),
        }
    }

    /// `None` when the condition holds, otherwise the named parts that are to blame, e.g.
    /// `vault is false and deleting is true`.
    pub fn refusal(&self, state: &S) -> Option<String> {
        if self.holds(state) {
            return None;
        }
        let mut blame = Vec::new();
        self.blame(state, false, &mut blame);
        Some(blame.join(" and "))
    }

    /// Collects the leaves that make this expression come out as `actual`.
    fn blame(&self, state: &S, actual: bool, into: &mut Vec<String>) {
        match &*self.0 {
            Expression::Named { name, .. } => {
                let line = format!("{name} is {actual}");
                if !into.contains(&line) {
                    into.push(line);
                }
            }
            Expression::Not(a) => a.blame(state, !actual, into),
            Expression::And(a, b) | Expression::Or(a, b) => {
                for part in [a, b] {
                    if part.holds(state) == actual {
                        part.blame(state, actual, into);
                    }
                }
            }
        }
    }

    /// How tightly the outermost operator binds.
    fn binding(&self) -> u8 {
        match &*self.0 {
            Expression::Or(..) => 0,
            Expression::And(..) => 1,
            Expression::Not(_) => 2,
            Expression::Named { .. } => 3,
        }
    }

    fn write_within(&self, f: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        if self.binding() < outer {
            write!(f, "({self})")
        } else {
            write!(f, "{self}")
        }
    }
}

impl<S: ?Sized> Clone for Predicate<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: ?Sized> BitAnd for Predicate<S> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(Arc::new(Expression::And(self, other)))
    }
}

impl<S: ?Sized> BitOr for Predicate<S> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(Arc::new(Expression::Or(self, other)))
    }
}

impl<S: ?Sized> Not for Predicate<S> {
    type Output = Self;
    fn not(self) -> Self {
        Self(Arc::new(Expression::Not(self)))
    }
}

impl<S: ?Sized> fmt::Display for Predicate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.binding();
        match &*self.0 {
            Expression::Named { name, .. } => f.write_str(name),
            Expression::And(a, b) => {
                a.write_within(f, own)?;
                f.write_str(" & ")?;
                b.write_within(f, own)
            }
            Expression::Or(a, b) => {
                a.write_within(f, own)?;
                f.write_str(" | ")?;
                b.write_within(f, own)
            }
            Expression::Not(a) => {
                f.write_str("!")?;
                a.write_within(f, own)
            }
        }
    }
}

impl<S: ?Sized> fmt::Debug for Predicate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Predicate({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bit(n: u32) -> Predicate<u32> {
        Predicate::new(format!("b{n}"), move |s: &u32| s & (1 << n) != 0)
    }

    #[test]
    fn prints_with_as_few_brackets_as_the_meaning_needs() {
        let [a, b, c] = [0, 1, 2].map(bit);
        assert_eq!((a.clone() & b.clone() & c.clone()).to_string(), "b0 & b1 & b2");
        assert_eq!(
            (a.clone() & (b.clone() | c.clone())).to_string(),
            "b0 & (b1 | b2)"
        );
        assert_eq!((!(a.clone() | b.clone()) | !c).to_string(), "!(b0 | b1) | !b2");
        assert_eq!((!!(a & b)).to_string(), "!!(b0 & b1)");
    }

    #[test]
    fn blames_the_parts_that_decided() {
        let [a, b, c] = [0, 1, 2].map(bit);
        let p = a.clone() & !(b.clone() | c.clone());
        assert_eq!(
            p.refusal(&0b110).unwrap(),
            "b0 is false and b1 is true and b2 is true"
        );
        assert_eq!(p.refusal(&0b011).unwrap(), "b1 is true");
        assert_eq!(p.refusal(&0b001), None);
        assert_eq!((a | b).refusal(&0).unwrap(), "b0 is false and b1 is false");
        assert_eq!((c.clone() & c).refusal(&0).unwrap(), "b2 is false");
    }

    fn any_predicate() -> impl Strategy<Value = Predicate<u32>> {
        let leaf = (0u32..4).prop_map(bit);
        leaf.prop_recursive(4, 24, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a & b),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a | b),
                inner.prop_map(|a| !a),
            ]
        })
    }

    /// Reads the printed form back; the grammar is the one `Display` writes.
    fn parse(text: &str) -> Predicate<u32> {
        fn or(t: &mut &str) -> Predicate<u32> {
            let mut left = and(t);
            while let Some(rest) = t.strip_prefix(" | ") {
                *t = rest;
                left = left | and(t);
            }
            left
        }
        fn and(t: &mut &str) -> Predicate<u32> {
            let mut left = unary(t);
            while let Some(rest) = t.strip_prefix(" & ") {
                *t = rest;
                left = left & unary(t);
            }
            left
        }
        fn unary(t: &mut &str) -> Predicate<u32> {
            if let Some(rest) = t.strip_prefix('!') {
                *t = rest;
                return !unary(t);
            }
            if let Some(rest) = t.strip_prefix('(') {
                *t = rest;
                let inner = or(t);
                *t = t.strip_prefix(')').unwrap();
                return inner;
            }
            let digit = t[1..2].parse().unwrap();
            *t = &t[2..];
            bit(digit)
        }
        let mut rest = text;
        let parsed = or(&mut rest);
        assert_eq!(rest, "");
        parsed
    }

    proptest! {
        #[test]
        fn the_printed_form_means_the_same(p in any_predicate(), state in 0u32..16) {
            let read = parse(&p.to_string());
            prop_assert_eq!(read.holds(&state), p.holds(&state));
            prop_assert_eq!(p.refusal(&state).is_none(), p.holds(&state));
            prop_assert_eq!((!p.clone()).holds(&state), !p.holds(&state));
        }
    }
}
