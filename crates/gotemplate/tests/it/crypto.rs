//! Certificates, keys, password hashes and ciphers against what Helm 4.3.1 printed. What was random there is read
//! back out of what it printed and given to the engine, so that all must be equal to the last byte.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_gotemplate::{Executor, FuncMap, PrivateKey, RandomSource, Taints, TemplateSet, Value, parse};
use serde::Deserialize;
use serde_json::json;

use crate::helm;
use crate::keys::{Printed, Recorded};
use crate::oracle::{printed, stripped};

#[derive(Deserialize)]
struct Table {
    certificates: Vec<CertificateRow>,
    texts: Vec<TextRow>,
}

#[derive(Deserialize)]
struct CertificateRow {
    e: String,
    certificates: Vec<Printed>,
}

#[derive(Deserialize)]
struct TextRow {
    e: String,
    out: Option<String>,
    err: Option<String>,
}

fn table() -> Table {
    serde_json::from_str(include_str!("../data/crypto_v4.3.1.json")).unwrap()
}

fn values() -> serde_json::Value {
    json!({"i": 1, "f": 2.5, "s": "xs", "l": ["a", "b"], "ips": ["10.0.0.1"], "m": {"k": "v"}})
}

/// Random bytes as they were.
#[derive(Clone, Default)]
struct Replay(Rc<RefCell<VecDeque<[u8; 16]>>>);

impl Replay {
    fn new(pieces: impl IntoIterator<Item = [u8; 16]>) -> Self {
        Self(Rc::new(RefCell::new(pieces.into_iter().collect())))
    }

    fn left(&self) -> usize {
        self.0.borrow().len()
    }
}

impl RandomSource for Replay {
    fn fill(&mut self, buffer: &mut [u8]) {
        let piece = self.0.borrow_mut().pop_front().unwrap_or_default();
        buffer.copy_from_slice(&piece);
    }
}

#[test]
fn certificates_equal_helms_to_the_last_byte() {
    let rows = table().certificates;
    assert!(rows.len() > 25);
    for row in rows {
        let random = Replay::new(row.certificates.iter().map(Printed::serial));
        let mut env = helm::env();
        env.now = row.certificates[0].made();
        env.random = Box::new(random.clone());
        // A key that the template brings stands in the template.
        let brings = row.e.matches("WithKey").count();
        let made = row.certificates.len() - brings;
        let keys = Recorded::strict(&row.certificates, |key| {
            brings == 0 || (made > 0 && matches!(key, PrivateKey::Rsa(_)))
        });
        assert_eq!(keys.left(), made, "{}", row.e);
        env.keys = Some(Box::new(keys));
        let out = printed(env, &row.e, &values()).unwrap_or_else(|error| panic!("{}: {error}", row.e));
        let got: Vec<Printed> = serde_json::from_str(&out).unwrap();
        assert_eq!(got, row.certificates, "{}", row.e);
        assert_eq!(random.left(), 0, "{}", row.e);
    }
}

/// bcrypt's alphabet differs from base64's.
fn salt(encoded: &str) -> [u8; 16] {
    bcrypt::BASE_64.decode(encoded).unwrap().try_into().unwrap()
}

/// The random bytes that went into a text.
fn random_of(row: &TextRow) -> Option<[u8; 16]> {
    let out = row.out.as_deref()?;
    let decoded = STANDARD.decode(out).unwrap_or_default();
    if row.e.contains("encryptAES") {
        return decoded.first_chunk().copied();
    }
    let text = if row.e.contains("b64enc") {
        String::from_utf8_lossy(&decoded).into_owned()
    } else {
        out.to_owned()
    };
    let (_, hash) = text.split_once("$2a$10$")?;
    Some(salt(&hash[..22]))
}

#[test]
fn texts_and_errors_equal_helms() {
    let rows = table().texts;
    let mut wrong = Vec::new();
    for row in &rows {
        let expected = match (&row.out, &row.err) {
            (Some(out), None) => Ok(out.clone()),
            (None, Some(error)) => Err(stripped(error)),
            _ => panic!("a row has an output or an error"),
        };
        let mut env = helm::env();
        env.keys = Some(Box::new(Recorded::any()));
        if let Some(bytes) = random_of(row) {
            env.random = Box::new(Replay::new([bytes]));
        }
        let got = printed(env, &row.e, &values());
        if got != expected {
            wrong.push(format!("{}\n  expected {expected:?}\n  got      {got:?}", row.e));
        }
    }
    assert!(rows.len() > 150);
    assert!(
        wrong.is_empty(),
        "{} of {} rows differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

/// Renders with recorded keys and tells what marked the render.
fn taints(text: &str) -> Taints {
    let functions = FuncMap::new();
    let parsed = parse("t", text.as_bytes(), |name| functions.contains(name)).unwrap();
    let mut set = TemplateSet::new("t");
    set.add(&parsed);
    let mut env = helm::env();
    env.keys = Some(Box::new(Recorded::any()));
    let mut executor = Executor::new(env, Rc::new(functions));
    executor.execute(&set, "t", &Value::Nil).unwrap();
    executor.taints()
}

#[test]
fn what_is_random_marks_the_render() {
    let random = Taints {
        random: true,
        ..Taints::default()
    };
    let dated = Taints { time: true, ..random };
    let ca = &table().certificates[0].certificates[0];
    let pair = format!(
        "\"{}\" \"{}\"",
        STANDARD.encode(&ca.cert),
        STANDARD.encode(&ca.key)
    );
    for (text, expected) in [
        ("{{ genCA \"x\" 1 }}", dated),
        ("{{ genSelfSignedCert \"x\" nil nil 1 }}", dated),
        ("{{ bcrypt \"x\" }}", random),
        ("{{ htpasswd \"x\" \"y\" }}", random),
        ("{{ encryptAES \"x\" \"y\" }}", random),
        ("{{ htpasswd \"x:\" \"y\" }}", Taints::default()),
        ("{{ encryptAES \"x\" \"\" }}", Taints::default()),
        ("{{ genPrivateKey \"none\" }}", Taints::default()),
        (
            "{{ derivePassword 1 \"pin\" \"a\" \"b\" \"c\" }}",
            Taints::default(),
        ),
        (&format!("{{{{ buildCustomCert {pair} }}}}"), Taints::default()),
    ] {
        assert_eq!(taints(text), expected, "{text}");
    }
}

#[test]
fn a_render_without_a_maker_of_keys_says_so() {
    let error = printed(helm::env(), "{{ (genCA \"x\" 1).Cert }}", &values()).unwrap_err();
    assert!(
        error.ends_with("error calling genCA: no private keys can be made or used in this render"),
        "{error}"
    );
}

#[test]
fn slow_functions_look_at_the_deadline_each_time() {
    for text in [
        "{{ range until 900 }}{{ bcrypt \"x\" }}{{ end }}",
        "{{ range until 900 }}{{ genCA \"x\" 1 }}{{ end }}",
        "{{ range until 900 }}{{ derivePassword 1 \"pin\" \"a\" \"b\" \"c\" }}{{ end }}",
    ] {
        let asked = std::cell::Cell::new(0);
        let mut env = helm::env();
        env.keys = Some(Box::new(Recorded::any()));
        env.deadline = Some(Box::new(move || {
            asked.set(asked.get() + 1);
            asked.get() > 2
        }));
        let error = printed(env, text, &values()).unwrap_err();
        assert!(
            error.contains("the time limit of the render has passed"),
            "{error}"
        );
    }
}
