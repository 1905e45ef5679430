//! Compiled expressions, each made once: to compile one takes longer than to render a small template.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use regex::bytes::{Regex, RegexBuilder};

use super::translate::translate;
use crate::value::Str;

/// Most expressions that one render keeps; charts have a handful, generated ones must not pile up.
const MAX_OF_RENDER: usize = 256;
/// Most expressions that stay with the templates, for all renders of a chart.
const MAX_OF_TEMPLATES: usize = 64;
/// Memory that one compiled expression may take.
const MAX_COMPILED: usize = 4 << 20;
/// Memory of an expression that stays with the templates. What charts write takes a tenth of it.
const MAX_KEPT: usize = 128 << 10;

/// A compiled expression, or Go's reason why it does not compile.
type Compiled = Result<Regex, Arc<str>>;

/// What one render has asked for. A clone of an expression has room of its own to match in, which takes longer to make than
/// most matches; so a render makes one, and no two renders wait for each other.
#[derive(Debug, Default)]
pub(crate) struct OfRender(HashMap<Str, Result<Rc<Regex>, Arc<str>>>);

/// What all renders of the same templates share, in any thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfTemplates(Arc<Mutex<HashMap<Box<[u8]>, Compiled>>>);

impl OfRender {
    /// The expression of this source, with Go's reason when there is none.
    pub(crate) fn get(&mut self, source: &Str, shared: &OfTemplates) -> Result<Rc<Regex>, Arc<str>> {
        if let Some(known) = self.0.get(source) {
            return known.clone();
        }
        let compiled = shared.get(source.as_bytes()).map(Rc::new);
        if self.0.len() >= MAX_OF_RENDER {
            self.0.clear();
        }
        self.0.insert(source.clone(), compiled.clone());
        compiled
    }
}

impl OfTemplates {
    fn get(&self, source: &[u8]) -> Compiled {
        if let Some(known) = self.known(source) {
            return known;
        }
        // The bound of what is kept is tried first, since how large an expression becomes is known only afterwards.
        match compile(source, MAX_KEPT) {
            Some(compiled) => {
                self.keep(source, &compiled);
                compiled
            }
            None => compile(source, MAX_COMPILED).unwrap_or_else(|| {
                let shown = String::from_utf8_lossy(source);
                Err(format!("error parsing regexp: expression too large: `{shown}`").into())
            }),
        }
    }

    fn known(&self, source: &[u8]) -> Option<Compiled> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(source).cloned()
    }

    /// Keeps it while there is room. The first ones stay: they come from texts that every render has, those that are
    /// made from values come by the thousand.
    fn keep(&self, source: &[u8], compiled: &Compiled) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_OF_TEMPLATES {
            known.insert(source.into(), compiled.clone());
        }
    }
}

/// The expression; none when it takes more memory than this.
fn compile(source: &[u8], memory: usize) -> Option<Compiled> {
    match translate(source) {
        Err(error) => Some(Err(format!("error parsing regexp: {error}").into())),
        Ok(pattern) => RegexBuilder::new(&pattern)
            .size_limit(memory)
            .build()
            .ok()
            .map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(shared: &OfTemplates) -> usize {
        shared.0.lock().unwrap().len()
    }

    #[test]
    fn renders_share_what_is_compiled_and_match_in_rooms_of_their_own() {
        let shared = OfTemplates::default();
        let (mut one, mut other) = (OfRender::default(), OfRender::default());
        let source = Str::from("a+|b");
        let first = one.get(&source, &shared).unwrap();
        assert!(Rc::ptr_eq(&first, &one.get(&source, &shared).unwrap()));
        assert!(!Rc::ptr_eq(&first, &other.get(&source, &shared).unwrap()));
        assert_eq!(kept(&shared), 1);

        let reason = one.get(&Str::from("a("), &shared).unwrap_err();
        assert!(Arc::ptr_eq(
            &reason,
            &other.get(&Str::from("a("), &shared).unwrap_err()
        ));
        assert_eq!(&*reason, "error parsing regexp: missing closing ): `a(`");
        assert_eq!(kept(&shared), 2);
    }

    #[test]
    fn what_is_large_or_one_of_too_many_stays_with_its_render() {
        let shared = OfTemplates::default();
        let mut render = OfRender::default();
        let large = Str::from("(abcdefghijklmnopqrst){500}");
        assert!(render.get(&large, &shared).is_ok());
        assert_eq!(kept(&shared), 0);
        for number in 0..2 * MAX_OF_RENDER {
            assert!(render.get(&Str::from(format!("x{number}")), &shared).is_ok());
            assert!(render.0.len() <= MAX_OF_RENDER);
        }
        assert_eq!(kept(&shared), MAX_OF_TEMPLATES);
    }
}
