//! The cases of the guard, without a tool that counts.

const CASES: [&str; 7] = [
    "decode-record",
    "decode-batch",
    "append-record",
    "append-batch",
    "produce-record",
    "produce-batch",
    "fetch",
];

#[test]
fn every_case_does_its_requests_and_says_nothing() {
    for case in CASES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let arguments = ["guard", case, "--requests", "3", "--dir", path.to_str().unwrap()];
        let mut out = Vec::new();
        benches::guard(&arguments.map(Into::into), &mut out)
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(out.is_empty(), "{case}");
        // What only decodes keeps nothing; all others leave a log with what they appended.
        assert_eq!(path.exists(), !case.starts_with("decode"), "{case}");
    }
}
