//! Times and durations as `fmt` shows them; the texts are Helm's.

use serde_json::json;

use crate::helm;

#[track_caller]
fn prints(text: &str, expected: &str) {
    let times = r#"{{ $t := toDate "2006-01-02" "2020-03-04" }}{{ $d := $t.Sub (toDate "2006-01-02" "2020-03-03") }}"#;
    let text = format!("{times}{text}");
    let printed = helm::render(&[("ex/templates/a.yaml", &text)], &helm::data(&json!({})));
    assert_eq!(printed.as_deref(), Ok(expected), "{text}");
}

#[test]
fn durations_are_numbers_to_verbs_for_numbers() {
    prints(r#"{{ printf "%d" $d }}"#, "86400000000000");
    prints(r#"{{ printf "%05d" ($t.Sub $t) }}"#, "00000");
    prints(
        r#"{{ printf "%v %s %#v %T" $d $d $d $d }}"#,
        "24h0m0s 24h0m0s 86400000000000 time.Duration",
    );
    prints(r#"{{ printf "%d" $t.Month }}"#, "3");
    prints(r#"{{ printf "%t" $d }}"#, "%!t(time.Duration=86400000000000)");
}

#[test]
fn times_have_a_form_in_code() {
    prints(
        r#"{{ printf "%#v" $t }}"#,
        "time.Date(2020, time.March, 4, 0, 0, 0, 0, time.Local)",
    );
    prints(
        r#"{{ printf "%#v" $t.UTC }}"#,
        "time.Date(2020, time.March, 4, 0, 0, 0, 0, time.UTC)",
    );
    prints(
        r#"{{ printf "%#v" (toDate "2006-01-02 -0700" "2020-03-04 +0530") }}"#,
        r#"time.Date(2020, time.March, 4, 0, 0, 0, 0, time.Location(""))"#,
    );
}
