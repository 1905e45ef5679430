use super::*;

fn general(value: f64) -> String {
    let mut out = String::new();
    push_general(&mut out, value);
    out
}

fn general_f32(value: f64) -> String {
    let mut out = String::new();
    push_general_f32(&mut out, value);
    out
}

#[test]
fn general_form_switches_at_minus_four_and_six() {
    assert_eq!(general(100_000.0), "100000");
    assert_eq!(general(1_000_000.0), "1e+06");
    assert_eq!(general(1_234_567.0), "1.234567e+06");
    assert_eq!(general(123_456.789), "123456.789");
    assert_eq!(general(0.0001), "0.0001");
    assert_eq!(general(0.00001), "1e-05");
    assert_eq!(general(-1.5e300), "-1.5e+300");
    assert_eq!(general(-0.0), "-0");
    assert_eq!(general(f64::NAN), ".nan");
    assert_eq!(general(f64::NEG_INFINITY), "-.inf");
    assert_eq!(general_f32(0.1), "0.1");
    assert_eq!(general_f32(123_456_789.5), "1.2345679e+08");
}

#[test]
fn json_form_switches_at_1e_minus_6_and_1e21() {
    assert_eq!(format_json_float(1e20), "100000000000000000000");
    assert_eq!(format_json_float(1e21), "1e+21");
    assert_eq!(format_json_float(0.000_001), "0.000001");
    assert_eq!(format_json_float(0.000_000_1), "1e-7");
    assert_eq!(format_json_float(2.5e-10), "2.5e-10");
    assert_eq!(format_json_float(-0.0), "-0");
    assert_eq!(format_json_float(12_345_678.9), "12345678.9");
    assert_eq!(format_json_float(f64::INFINITY), "+Inf");
}

#[test]
fn of_two_equally_near_forms_the_even_one() {
    assert_eq!(
        format_json_float(1_844_674_407_370_955_f64 + 0.25),
        "1844674407370955.2"
    );
    assert_eq!(
        format_json_float(1_844_674_407_370_955_f64 + 0.75),
        "1844674407370955.8"
    );
    assert_eq!(format_json_float(9_007_199_254_740_993.0), "9007199254740992");
    assert_eq!(format_json_float(5e-324), "5e-324");
    assert_eq!(
        format_json_float(1.797_693_134_862_315_7e308),
        "1.7976931348623157e+308"
    );
}

#[test]
fn integers_follow_go_prefixes() {
    assert_eq!(parse_int("0777"), Some(511));
    assert_eq!(parse_int("0o17"), Some(15));
    assert_eq!(parse_int("-0x1F"), Some(-31));
    assert_eq!(parse_int("0B11"), Some(3));
    assert_eq!(parse_int("08"), None);
    assert_eq!(parse_int("0x"), None);
    assert_eq!(parse_int("+"), None);
    assert_eq!(parse_int("00"), Some(0));
    assert_eq!(parse_int("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(parse_int("9223372036854775808"), None);
    assert_eq!(parse_uint("18446744073709551615"), Some(u64::MAX));
    assert_eq!(parse_uint("18446744073709551616"), None);
    assert_eq!(parse_int_radix("+1", 2), Some(1));
    assert_eq!(parse_int_radix("-", 2), None);
}

#[test]
fn floats_follow_yaml_shape() {
    for good in ["1.", ".5", "1.5e3", "-.5", "+12e03", "1e+3", "0.0"] {
        assert!(is_yaml_float(good), "{good}");
    }
    for bad in ["", ".", "e1", "1e", "1e3.5", "1.2.3", "+", "1_0", "0x1p3", "inf"] {
        assert!(!is_yaml_float(bad), "{bad}");
    }
    assert_eq!(parse_float("1e400"), None);
    assert_eq!(parse_float("1e-400"), Some(0.0));
    assert_eq!(parse_point_float(".5_0"), Some(0.5));
    assert_eq!(parse_point_float(".5_"), None);
    assert_eq!(parse_point_float("._5"), None);
    assert_eq!(parse_point_float(".5__0"), None);
}
