//! Which configurations become a bucket's, and with which of S3's errors the others are refused.

use kolumn_notify::config::TargetKind;
use kolumn_notify::rules::{
    Admission, BucketRules, Dialect, Draft, KeyFilter, KnownTargets, Limits, Rule, RuleDraft, RuleError,
    RuleErrorKind, RuleKind,
};
use proptest::prelude::*;

use crate::rules_support::{arn, targets};

const BOTH: [Dialect; 2] = [Dialect::Minio, Dialect::Aws];

/// Clients look for this text.
const OVERLAP: &str = "An object key name filtering rule defined with overlapping prefixes, overlapping suffixes, or \
    overlapping combinations of prefixes and suffixes for the same event types";

fn body(rules: &[&str]) -> String {
    let rules: Vec<String> =
        rules.iter().map(|rule| format!("<QueueConfiguration>{rule}</QueueConfiguration>")).collect();
    let rules = rules.concat();
    format!("<NotificationConfiguration>{rules}</NotificationConfiguration>")
}

fn to(id: &str, events: &[&str], filter: &[(&str, &str)]) -> String {
    let events: Vec<String> = events.iter().map(|event| format!("<Event>s3:{event}</Event>")).collect();
    let filter: Vec<String> = filter
        .iter()
        .map(|(name, value)| format!("<FilterRule><Name>{name}</Name><Value>{value}</Value></FilterRule>"))
        .collect();
    let queue = format!("<Queue>arn:minio:sqs::{id}:kafka</Queue>");
    format!("{}<Filter><S3Key>{}</S3Key></Filter>{queue}", events.concat(), filter.concat())
}

fn admit(dialect: Dialect, rules: &[&str]) -> Result<BucketRules, RuleError> {
    Admission::new(dialect, &targets()).admit_xml(body(rules).as_bytes())
}

#[track_caller]
fn check(dialect: Dialect, rules: &[&str], expect: (RuleErrorKind, &str, &str), place: &str) {
    let error = admit(dialect, rules).unwrap_err();
    let (kind, code, message) = expect;
    assert_eq!((error.kind(), error.code(), error.status()), (kind, code, 400), "{error}");
    assert!(error.message().contains(message), "{error}");
    assert_eq!(error.place(), place, "{error}");
}

#[test]
fn topics_and_functions_are_unsupported_by_minio_and_need_a_target_in_aws() {
    for kind in ["Topic", "CloudFunction"] {
        let body = |id: &str| {
            format!(
                "<NotificationConfiguration><{kind}Configuration><{kind}>arn:minio:sqs::{id}:kafka</{kind}>\
                 <Event>s3:ObjectCreated:*</Event></{kind}Configuration></NotificationConfiguration>"
            )
        };
        let targets = targets();
        let error =
            Admission::new(Dialect::Minio, &targets).admit_xml(body("primary").as_bytes()).unwrap_err();
        assert_eq!(
            (error.code(), error.kind()),
            ("UnsupportedNotification", RuleErrorKind::UnsupportedDestination)
        );
        assert_eq!(error.place(), format!("{kind}Configuration[1]"));
        let aws = Admission::new(Dialect::Aws, &targets);
        assert_eq!(aws.admit_xml(body("primary").as_bytes()).unwrap().rules().len(), 1);
        let error = aws.admit_xml(body("none").as_bytes()).unwrap_err();
        assert_eq!(error.kind(), RuleErrorKind::UnknownDestination);
        assert_eq!(error.place(), format!("{kind}Configuration[1]/{kind}"));
    }
}

#[test]
fn a_destination_that_is_not_there_is_refused_with_those_that_are() {
    let text =
        "A specified destination ARN does not exist or is not well-formed. Verify the destination ARN.";
    let unknown = RuleErrorKind::UnknownDestination;
    for dialect in BOTH {
        let missing = to("tertiary", &["ObjectCreated:*"], &[]);
        let good = to("primary", &["ObjectRemoved:*"], &[]);
        for message in [
            text,
            "given `arn:minio:sqs::tertiary:kafka`",
            "; these exist: `arn:minio:sqs::primary:kafka`, `arn:minio:sqs::secondary:kafka`",
        ] {
            let expect = (unknown, "InvalidArgument", message);
            check(dialect, &[&good, &missing], expect, "QueueConfiguration[2]/Queue");
        }
        let malformed = "<Queue>arn:aws:sqs:us-east-1:1:q</Queue><Event>s3:ObjectCreated:*</Event>";
        for message in
            [text, "`arn:aws:sqs:us-east-1:1:q` (an ARN", "these exist: `arn:minio:sqs::primary:kafka`"]
        {
            check(
                dialect,
                &[malformed],
                (unknown, "InvalidArgument", message),
                "QueueConfiguration[1]/Queue",
            );
        }
    }
    let none = KnownTargets::default();
    let error = Admission::new(Dialect::Minio, &none)
        .admit_xml(body(&[&to("a", &["ObjectCreated:*"], &[])]).as_bytes())
        .unwrap_err();
    assert!(error.message().contains("; no destination is configured"), "{error}");
    let many =
        KnownTargets::new("", (0..25).map(|nth| (TargetKind::Kafka, format!("t{nth:02}").parse().unwrap())));
    let error = Admission::new(Dialect::Minio, &many)
        .admit_xml(body(&[&to("a", &["ObjectCreated:*"], &[])]).as_bytes())
        .unwrap_err();
    assert!(error.message().contains("`arn:minio:sqs::t19:kafka` and 5 more"), "{error}");
}

#[test]
fn an_arn_of_another_region_is_refused_and_the_servers_is_written() {
    let in_region = |server: &str, given: &str| {
        let targets = KnownTargets::new(server, [(TargetKind::Kafka, "primary".parse().unwrap())]);
        let rule =
            format!("<Queue>arn:minio:sqs:{given}:PRIMARY:kafka</Queue><Event>s3:ObjectCreated:*</Event>");
        let admitted = Admission::new(Dialect::Minio, &targets).admit_xml(body(&[&rule]).as_bytes());
        admitted.map(|rules| rules.rules()[0].destination().to_string())
    };
    assert_eq!(in_region("eu-1", "").unwrap(), "arn:minio:sqs:eu-1:primary:kafka");
    assert_eq!(in_region("eu-1", "eu-1").unwrap(), "arn:minio:sqs:eu-1:primary:kafka");
    assert_eq!(in_region("", "us-1").unwrap(), "arn:minio:sqs::primary:kafka");
    let error = in_region("eu-1", "us-1").unwrap_err();
    assert_eq!((error.kind(), error.code()), (RuleErrorKind::OtherRegion, "InvalidArgument"));
    assert!(
        error.message().contains("but the server is in `eu-1` (at QueueConfiguration[1]/Queue)"),
        "{error}"
    );
}

#[test]
fn events_are_those_of_the_dialect() {
    fn unknown(message: &str) -> (RuleErrorKind, &str, &str) {
        (RuleErrorKind::UnknownEvent, "InvalidArgument", message)
    }
    let text = "A specified event is not supported for notifications.";
    for name in ["ObjectTagging:*", "ObjectTagging:Put", "LifecycleExpiration:*", "IntelligentTiering"] {
        let rule = to("primary", &["ObjectCreated:Put", name], &[]);
        check(
            Dialect::Minio,
            &[&rule],
            unknown(&format!("{text} `s3:{name}`")),
            "QueueConfiguration[1]/Event[2]",
        );
        assert!(admit(Dialect::Aws, &[&rule]).is_ok(), "{name}");
    }
    for name in ["ObjectAccessed:*", "ObjectRemoved:NoOP", "Scanner:BigPrefix", "BucketCreated:*"] {
        let rule = to("primary", &[name], &[]);
        check(Dialect::Aws, &[&rule], unknown(text), "QueueConfiguration[1]/Event[1]");
        assert!(admit(Dialect::Minio, &[&rule]).is_ok(), "{name}");
    }
    for dialect in BOTH {
        for name in ["ObjectCreated", "objectcreated:Put", "TestEvent", "put", ""] {
            let rule = to("primary", &[name], &[]);
            check(dialect, &[&rule], unknown(text), "QueueConfiguration[1]/Event[1]");
        }
        for name in ["ObjectCreated:*", "ObjectCreated:Put", "ObjectRemoved:Delete", "*"] {
            assert!(admit(dialect, &[&to("primary", &[name], &[])]).is_ok(), "{name}");
        }
    }
    let long = to("primary", &["x".repeat(5000).as_str()], &[]);
    let error = admit(Dialect::Minio, &[&long]).unwrap_err();
    assert!(error.message().len() < 300 && error.message().contains("xxx…`"), "{error}");
}

#[test]
fn an_event_is_named_once_in_a_rule() {
    let twice = to("primary", &["ObjectCreated:Put", "ObjectRemoved:*", "ObjectCreated:Put"], &[]);
    let text = "Configurations overlap. Configurations on the same bucket cannot share a common event type.";
    let none = to("primary", &[], &[]);
    for dialect in BOTH {
        let expect = (RuleErrorKind::RepeatedEvent, "InvalidArgument", text);
        check(dialect, &[&twice], expect, "QueueConfiguration[1]");
        check(
            dialect,
            &[&none],
            (RuleErrorKind::Malformed, "MalformedXML", "names an event"),
            "QueueConfiguration[1]",
        );
        // by name, not by what it means
        assert!(admit(dialect, &[&to("primary", &["ObjectCreated:*", "ObjectCreated:Put"], &[])]).is_ok());
    }
}

#[test]
fn a_filter_has_a_prefix_and_a_suffix() {
    let filter = |filter: &[(&str, &str)]| to("primary", &["ObjectCreated:*"], filter);
    let names = "filter rule name must be either prefix or suffix";
    for (dialect, name) in [(Dialect::Minio, "Prefix"), (Dialect::Minio, "SUFFIX"), (Dialect::Aws, "infix")] {
        let expect = (RuleErrorKind::FilterName, "InvalidArgument", names);
        check(
            dialect,
            &[&filter(&[("suffix", "a"), (name, "b")])],
            expect,
            "QueueConfiguration[1]/Filter/FilterRule[2]",
        );
    }
    for (name, kind) in [("prefix", RuleErrorKind::SecondPrefix), ("suffix", RuleErrorKind::SecondSuffix)] {
        let text = format!("Cannot specify more than one {name} rule in a filter.");
        for dialect in BOTH {
            // an empty one is one
            let twice = filter(&[(name, ""), (name, "b")]);
            check(
                dialect,
                &[&twice],
                (kind, "InvalidArgument", &text),
                "QueueConfiguration[1]/Filter/FilterRule[2]",
            );
        }
    }
    let rules = admit(Dialect::Aws, &[&filter(&[("Prefix", "a"), ("SUFFIX", "b")])]).unwrap();
    assert_eq!(rules.rules()[0].filter(), &KeyFilter::new("a", "b").unwrap());
    assert!(rules.to_xml().contains("<Name>prefix</Name>"));
}

#[test]
fn a_value_that_no_key_has_is_refused_and_never_matches_everything() {
    let longest = "x".repeat(1024);
    for name in ["prefix", "suffix"] {
        let rule = |value: &str| to("primary", &["ObjectCreated:*"], &[(name, value)]);
        for dialect in BOTH {
            for (value, message) in [
                (
                    &*format!("{longest}x"),
                    "Size of filter rule value cannot exceed 1024 bytes in UTF-8 representation: 1025",
                ),
                (&*"é".repeat(513), "cannot exceed 1024 bytes"),
                ("a\\b", "a backslash"),
                ("..", "a segment `.` or `..`"),
                ("a/../b", "a segment"),
                ("./", "a segment"),
                ("a/.", "a segment"),
                ("a&#1;", "XML cannot carry the character '\\u{1}'"),
            ] {
                let expect = (RuleErrorKind::FilterValue, "InvalidArgument", message);
                check(dialect, &[&rule(value)], expect, "QueueConfiguration[1]/Filter");
            }
            for value in [&*longest, ".jpg", "a.b/", "...", "a/.hidden/", "*?", "/", "//", "é/"] {
                let rules = admit(dialect, &[&rule(value)]).unwrap();
                let filter = rules.rules()[0].filter();
                assert_eq!(
                    (filter.prefix().len() + filter.suffix().len(), filter.is_empty()),
                    (value.len(), false)
                );
            }
        }
    }
}

#[test]
fn minio_refuses_the_same_rule_twice_and_nothing_else_that_overlaps() {
    let rule = to("primary", &["ObjectCreated:*", "ObjectRemoved:*"], &[("prefix", "a")]);
    let turned = to("PRIMARY", &["ObjectRemoved:*", "ObjectCreated:*"], &[("prefix", "a")]);
    let named = format!("<Id>q1</Id>{rule}");
    let elsewhere = to("secondary", &["ObjectCreated:*", "ObjectRemoved:*"], &[("prefix", "a")]);
    let wider = to("primary", &["ObjectCreated:*"], &[]);
    let expect = (RuleErrorKind::Overlap, "InvalidArgument", OVERLAP);
    check(Dialect::Minio, &[&wider, &rule, &turned], expect, "QueueConfiguration[3]");
    check(Dialect::Minio, &[&named, &named], expect, "QueueConfiguration[2]");
    assert_eq!(admit(Dialect::Minio, &[&rule, &named, &elsewhere, &wider]).unwrap().rules().len(), 4);
}

#[test]
fn aws_refuses_rules_that_an_event_could_pass_both_of() {
    let rule = |id: &str, event: &str, prefix: &str, suffix: &str| {
        to(id, &[event], &[("prefix", prefix), ("suffix", suffix)])
    };
    let first = rule("primary", "ObjectCreated:*", "images/", ".jpg");
    for other in [
        rule("secondary", "ObjectCreated:Put", "images/2024/", ".jpg"),
        rule("primary", "ObjectCreated:*", "ima", "g"),
        rule("primary", "*", "", ""),
        first.clone(),
    ] {
        let expect = (RuleErrorKind::Overlap, "InvalidArgument", OVERLAP);
        check(Dialect::Aws, &[&first, &other], expect, "QueueConfiguration[2]");
    }
    for other in [
        rule("primary", "ObjectRemoved:*", "images/", ".jpg"),
        rule("primary", "ObjectCreated:*", "images/", ".png"),
        rule("primary", "ObjectCreated:*", "logs/", ".jpg"),
    ] {
        assert!(admit(Dialect::Aws, &[&first, &other]).is_ok(), "{other}");
    }
}

#[test]
fn aws_gives_an_identifier_to_each_rule_that_has_none_and_minio_leaves_it_empty() {
    let created = to("primary", &["ObjectCreated:*"], &[]);
    let removed = format!("<Id>mine</Id>{}", to("primary", &["ObjectRemoved:*"], &[]));
    let ids = |rules: BucketRules| -> Vec<String> {
        rules.rules().iter().map(|rule| rule.id().to_owned()).collect()
    };
    assert_eq!(ids(admit(Dialect::Minio, &[&created, &removed]).unwrap()), ["", "mine"]);
    let made = ids(admit(Dialect::Aws, &[&created, &removed]).unwrap());
    assert!(made[0].starts_with("rule-") && made[0].len() == 21, "{made:?}");
    assert_eq!(made[1], "mine");
    assert_eq!(ids(admit(Dialect::Aws, &[&created]).unwrap()), made[..1], "the same rule has the same");

    // also when somebody else took it
    let thief = format!("<Id>{}</Id>{}", made[0], to("primary", &["ObjectRemoved:*"], &[]));
    assert_eq!(
        ids(admit(Dialect::Aws, &[&created, &thief]).unwrap()),
        [format!("{}-2", made[0]), made[0].clone()]
    );

    let again = format!("<Id>mine</Id>{created}");
    let expect = (RuleErrorKind::Id, "InvalidArgument", "Same ID used for multiple configurations");
    check(Dialect::Aws, &[&removed, &again], expect, "QueueConfiguration[2]");
    assert!(admit(Dialect::Minio, &[&removed, &again]).is_ok());
}

#[test]
fn an_identifier_is_bounded_and_can_be_written_as_xml() {
    let rule = |id: &str| format!("<Id>{id}</Id>{}", to("primary", &["ObjectCreated:*"], &[]));
    for dialect in BOTH {
        let longest = "é".repeat(255);
        assert_eq!(admit(dialect, &[&rule(&longest)]).unwrap().rules()[0].id(), longest);
        let expect = (RuleErrorKind::Id, "InvalidArgument", "at most 255 characters, and this has 256");
        check(dialect, &[&rule(&format!("{longest}x"))], expect, "QueueConfiguration[1]");
        let expect = (RuleErrorKind::Id, "InvalidArgument", "XML cannot carry");
        check(dialect, &[&rule("&#x1f;")], expect, "QueueConfiguration[1]");
    }
}

/// `mc event add`: reads all rules, appends one, writes all back.
fn add(dialect: Dialect, stored: &BucketRules, rule: RuleDraft) -> Result<BucketRules, RuleError> {
    let targets = targets();
    let shown = stored.clone().canonical(&targets).to_xml();
    let mut draft = Draft::from_xml(shown.as_bytes(), &Limits::default()).unwrap();
    draft.rules.push(rule);
    Admission::new(dialect, &targets).with_stored(stored).admit(draft)
}

fn draft(id: &str, event: &str) -> RuleDraft {
    let mut rule = RuleDraft::new(RuleKind::Queue);
    rule.destination = Some(format!("arn:minio:sqs::{id}:kafka"));
    rule.events = vec![event.to_owned()];
    rule
}

#[test]
fn a_rule_that_is_there_already_is_told_so_by_the_text_that_mc_ignores() {
    for dialect in BOTH {
        let once = add(dialect, &BucketRules::default(), draft("primary", "s3:ObjectCreated:*")).unwrap();
        let error = add(dialect, &once, draft("primary", "s3:ObjectCreated:*")).unwrap_err();
        assert!(error.message().contains(OVERLAP), "{error}");
    }
}

#[test]
fn a_rule_whose_target_is_gone_stays_until_a_client_removes_it() {
    for dialect in BOTH {
        let stale = Rule::new(arn("gone"), ["s3:ObjectRemoved:*".parse().unwrap()]).unwrap();
        let stored = BucketRules::new(vec![stale.clone()]);
        let places: Vec<String> = stored.stale(&targets()).map(|(place, _)| place).collect();
        assert_eq!(places, ["QueueConfiguration[1]"]);

        let added = add(dialect, &stored, draft("primary", "s3:ObjectCreated:*")).unwrap();
        assert_eq!(added.rules()[0].destination(), stale.destination());
        assert_eq!((added.rules().len(), added.stale(&targets()).count()), (2, 1));

        let error = add(dialect, &added, draft("gone", "s3:ObjectCreated:Put")).unwrap_err();
        assert_eq!(error.kind(), RuleErrorKind::UnknownDestination, "it gets no new ones");
        let error = Admission::new(dialect, &targets()).admit_xml(stored.to_xml().as_bytes()).unwrap_err();
        assert_eq!(error.kind(), RuleErrorKind::UnknownDestination, "nor does another bucket");
    }
}

#[test]
fn what_was_admitted_by_either_dialect_can_be_loaded_and_is_admitted_again_as_it_is() {
    let rules = [
        to("primary", &["ObjectCreated:*"], &[("prefix", "a")]),
        to("primary", &["ObjectRemoved:*"], &[("suffix", "b")]),
    ];
    for dialect in BOTH {
        let admitted = admit(dialect, &[&rules[0], &rules[1]]).unwrap();
        assert_eq!(BucketRules::from_xml(admitted.to_xml().as_bytes()).unwrap(), admitted);
        let targets = targets();
        let shown = admitted.clone().canonical(&targets).to_xml();
        assert_eq!(Admission::new(dialect, &targets).admit_xml(shown.as_bytes()).unwrap(), admitted);
        assert_eq!(BucketRules::from_json(admitted.to_json().as_bytes()).unwrap(), admitted);
    }
}

/// All keys of up to six of two letters: enough to have a prefix and a suffix of three, side by side.
fn keys() -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut longest = keys.clone();
    for _ in 0..6 {
        longest = longest.iter().flat_map(|key| ["a", "b"].map(|letter| format!("{key}{letter}"))).collect();
        keys.extend(longest.iter().cloned());
    }
    keys
}

proptest! {
    #[test]
    fn filters_overlap_if_some_key_passes_both(
        values in proptest::array::uniform4("[ab]{0,3}"),
    ) {
        let [prefix, suffix, other_prefix, other_suffix] = values;
        let passes = |key: &String, prefix: &str, suffix: &str| key.starts_with(prefix) && key.ends_with(suffix);
        let both = |key: &String| passes(key, &prefix, &suffix) && passes(key, &other_prefix, &other_suffix);
        let filter = KeyFilter::new(&*prefix, &*suffix).unwrap();
        let other = KeyFilter::new(&*other_prefix, &*other_suffix).unwrap();
        prop_assert_eq!(filter.overlaps(&other), keys().iter().any(both));
        prop_assert_eq!(other.overlaps(&filter), filter.overlaps(&other));
    }
}
