//! Arbitrary bytes as a notification configuration: never a panic, and what is read can be written and read again.
#![no_main]

use kolumn_notify::rules::{Admission, BucketRules, Dialect, KnownTargets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let targets = KnownTargets::default();
    for dialect in [Dialect::Minio, Dialect::Aws] {
        let _ = Admission::new(dialect, &targets).admit_xml(input);
        let _ = Admission::new(dialect, &targets).admit_json(input);
    }
    for rules in [BucketRules::from_xml(input), BucketRules::from_json(input)].into_iter().flatten() {
        let again = BucketRules::from_xml(rules.to_xml().as_bytes()).expect("it was written here");
        assert_eq!(again, rules);
    }
});
