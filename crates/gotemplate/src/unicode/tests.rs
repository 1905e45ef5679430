use super::*;

/// FNV-1a over the code points, four bytes each.
fn checksum(codes: impl Iterator<Item = u32>) -> u64 {
    codes
        .flat_map(u32::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

fn class(holds: impl Fn(char) -> bool) -> u64 {
    checksum(('\0'..=char::MAX).filter(|c| holds(*c)).map(u32::from))
}

fn mapping(map: impl Fn(char) -> char) -> u64 {
    checksum(
        ('\0'..=char::MAX)
            .filter(|c| map(*c) != *c)
            .flat_map(|c| [u32::from(c), u32::from(map(c))]),
    )
}

/// The checksums are of what Helm 4.3.1 prints when it is asked about every code point.
#[test]
fn classes_are_those_of_go() {
    assert_eq!(class(is_letter), 0x31fa_5cfe_1fa9_4b8f, "letters");
    assert_eq!(class(is_digit), 0xd223_c9c4_153b_b5d6, "digits");
    assert_eq!(class(is_number), 0xa1b0_6be6_9293_73bb, "numbers");
    assert_eq!(class(is_punct), 0xe5cb_7a7a_7e23_6379, "punctuation");
    assert_eq!(class(is_print), 0x8759_7ac4_eeae_f43c, "printable");
    assert_eq!(class(is_upper), 0x7aa5_0c0c_bedc_fdf6, "upper case");
    assert_eq!(class(is_lower), 0x2889_0b9d_f8ac_2edc, "lower case");
    assert_eq!(class(is_title), 0xb10b_0a54_4537_bd2c, "title case");
}

#[test]
fn case_mappings_are_those_of_go() {
    assert_eq!(mapping(to_upper), 0x921d_330b_e593_9c15, "to upper case");
    assert_eq!(mapping(to_lower), 0x5d1c_a2dd_4d05_cf1e, "to lower case");
    assert_eq!(mapping(to_title), 0x95b9_08e4_9f7d_7129, "to title case");
}

#[test]
fn invalid_bytes_decode_one_by_one() {
    let text = b"a\xff\xc3\xa9\xe2\x98z";
    let widths: Vec<(char, usize)> = runes(text).collect();
    let bad = (char::REPLACEMENT_CHARACTER, 1);
    assert_eq!(widths, [('a', 1), bad, ('é', 2), bad, bad, ('z', 1)]);
    assert_eq!(decode_last("aé".as_bytes()), ('é', 2));
    assert_eq!(decode_last(b"a\x98"), bad);
    assert_eq!(decode_last(b""), (char::REPLACEMENT_CHARACTER, 0));
}

#[test]
fn trims_what_go_trims() {
    assert_eq!(trim_space(" \u{a0}\ta b\u{3000}\n".as_bytes()), b"a b");
    assert_eq!(trim_space(b" \xff "), b"\xff");
}
