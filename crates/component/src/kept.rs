//! Renders that used randomness, time or a lookup are made once per component revision and kept, so that a retry, a
//! repair or the change of another component never makes new passwords (DESIGN §9).

use evenkeel_core::{Digest, Sensitive};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hooks::{HookRule, RenderedHook};
use crate::render::{Document, Documents};

/// The form in which renders are kept.
const FORMAT: u32 = 1;

/// A render as it is kept. Holds secrets: it is encrypted, or inside a Secret, wherever it rests.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// What it was made from; a render of other inputs is not reused.
    inputs: Digest,
    objects: Vec<KeptDocument>,
    hooks: Vec<KeptDocument>,
}

#[derive(Serialize, Deserialize)]
struct KeptDocument {
    source: String,
    object: Value,
    /// Of hooks; those that were kept without one were never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<HookRule>,
}

/// Writes a render that is to be kept.
pub(crate) fn write(documents: &Documents, inputs: Digest) -> Result<Sensitive<Vec<u8>>, serde_json::Error> {
    let kept = |document: &Document, rule: Option<HookRule>| KeptDocument {
        source: document.source.clone(),
        object: document.object.clone(),
        rule,
    };
    let kept = Kept {
        format: FORMAT,
        inputs,
        objects: documents
            .objects
            .iter()
            .map(|document| kept(document, None))
            .collect(),
        hooks: documents
            .hooks
            .iter()
            .map(|hook| kept(&hook.document, Some(hook.rule.clone())))
            .collect(),
    };
    serde_json::to_vec(&kept).map(Sensitive::new)
}

/// Reads a kept render; none when it was made from other inputs, or by a release with another form.
pub(crate) fn read(bytes: &Sensitive<Vec<u8>>, inputs: Digest) -> Option<Documents> {
    let kept: Kept = serde_json::from_slice(bytes.expose()).ok()?;
    if kept.format != FORMAT || kept.inputs != inputs {
        return None;
    }
    let document = |kept: KeptDocument| Document {
        source: kept.source,
        object: kept.object,
    };
    let hook = |mut kept: KeptDocument| {
        let rule = kept.rule.take()?;
        Some(RenderedHook {
            document: document(kept),
            rule,
        })
    };
    Some(Documents {
        objects: kept.objects.into_iter().map(document).collect(),
        hooks: kept.hooks.into_iter().filter_map(hook).collect(),
        is_marked: true,
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{HookDeletePolicy, HookEvent};

    use super::*;

    #[test]
    fn only_the_render_of_the_same_inputs_is_reused() {
        let document = Document {
            source: "web/templates/s.yaml".to_owned(),
            object: serde_json::json!({"kind": "Secret"}),
        };
        let hook = RenderedHook {
            document: document.clone(),
            rule: HookRule {
                events: [HookEvent::PostInstall].into(),
                weight: 7,
                delete_policies: [HookDeletePolicy::HookFailed].into(),
            },
        };
        let documents = Documents {
            objects: vec![document],
            hooks: vec![hook],
            is_marked: true,
        };
        let inputs = Digest::of("a");
        let kept = write(&documents, inputs).expect("it is JSON");
        assert_eq!(read(&kept, inputs), Some(documents));
        assert_eq!(read(&kept, Digest::of("b")), None);
        assert_eq!(read(&Sensitive::new(b"{}".to_vec()), inputs), None);
    }
}
