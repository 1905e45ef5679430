//! One text for equal documents, whatever the order of their keys.

use serde::Serialize;
use serde_json::Value;
use zeroize::Zeroizing;

/// The JSON of `document` with the keys of every object in order. Wiped when dropped: it may hold secrets.
///
/// # Errors
/// What the document's own serialisation answers.
pub(crate) fn canonical<T: Serialize>(document: &T) -> Result<Zeroizing<Vec<u8>>, serde_json::Error> {
    let mut text = Zeroizing::new(Vec::new());
    write(&serde_json::to_value(document)?, &mut text)?;
    Ok(text)
}

fn write(value: &Value, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push(b'{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                serde_json::to_writer(&mut *text, key)?;
                text.push(b':');
                write(value, text)?;
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write(item, text)?;
            }
            text.push(b']');
        }
        scalar => serde_json::to_writer(&mut *text, scalar)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_in_order_at_every_depth() {
        let document = json!({"b": [{"z": 1, "a": "x\n"}, null, 1.5], "a": {"d": true, "c": {}}});
        let text = canonical(&document).unwrap();
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            r#"{"a":{"c":{},"d":true},"b":[{"a":"x\n","z":1},null,1.5]}"#
        );
        let again: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(again, document);
    }
}
