//! What a backup of the database holds (K17).

use evenkeel_realparts::Postgres;

use crate::fixture::*;
use crate::sqlite::secrets::{MARK, contains, filled};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_stands_in_a_dump() {
    let fleet = filled::<Pg>().await;
    let dump = Postgres::program("pg_dump")
        .unwrap()
        .arg(&fleet.backend.url)
        .output()
        .unwrap();
    assert!(dump.status.success(), "{dump:?}");
    // What is not secret is found, so the scan can see.
    assert!(contains(&dump.stdout, b"COPY public.cluster_configurations"));
    assert!(contains(&dump.stdout, b"pg_catalog"));
    assert!(!contains(&dump.stdout, MARK.as_bytes()));
    // Binary columns are written as hexadecimal digits.
    let digits: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!contains(&dump.stdout, digits.as_bytes()));
    assert!(contains(&dump.stdout, b"\\xe701"), "encrypted values are there");
    let keys = std::fs::read_to_string(fleet.backend.directory.path().join("keys")).unwrap();
    let ring: serde_json::Value = serde_json::from_str(&keys).unwrap();
    for key in ring["keys"].as_array().unwrap() {
        assert!(!contains(&dump.stdout, key["key"].as_str().unwrap().as_bytes()));
    }
}
