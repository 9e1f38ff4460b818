//! To whom events go.

use std::thread;

use kolumn_notify::event::{EventGroup, EventName, EventSelector};
use kolumn_notify::rules::{BucketRules, KeyFilter, LiveRules, Rule, RuleSet};
use proptest::prelude::*;

use crate::rules_support::arn;

fn rule(target: &str, event: &str, prefix: &str, suffix: &str) -> Rule {
    let filter = KeyFilter::new(prefix, suffix).unwrap();
    Rule::new(arn(target), [event.parse().unwrap()]).unwrap().with_filter(filter)
}

fn with_ids(rules: Vec<Rule>) -> BucketRules {
    rules.into_iter().enumerate().map(|(nth, rule)| rule.with_id(nth.to_string()).unwrap()).collect()
}

fn bucket(rules: Vec<Rule>) -> RuleSet {
    RuleSet::new(BucketRules::default(), [("photos".to_owned(), with_ids(rules))])
}

#[track_caller]
fn check(filter: (&str, &str), key: &str, expect: bool) {
    let set = bucket(vec![rule("t", "s3:ObjectCreated:*", filter.0, filter.1)]);
    let found = set.matches("photos", key, EventName::ObjectCreatedPut).len();
    assert_eq!(found == 1, expect, "{filter:?} and {key}");
}

#[test]
fn filters_are_literal_and_compare_the_raw_key() {
    check(("", ""), "any", true);
    check(("images/", ".jpg"), "images/a.jpg", true);
    check(("images/", ".jpg"), "images/a.png", false);
    check(("images/", ".jpg"), "other/a.jpg", false);
    check(("abc", "bc"), "abc", true);
    check(("abc", "bc"), "ab", false);
    check(("a*", ""), "a*b", true);
    check(("a*", ""), "axb", false);
    check(("", "?.jpg"), "a.jpg", false);
    check(("a b/", ""), "a b/c", true);
    check(("a b/", ""), "a+b/c", false);
    check(("a b/", ""), "a%20b/c", false);
    check(("é", "😀"), "éx😀", true);
    check(("", "\u{80}"), "\u{80}", true);
    check(("Images/", ""), "images/a", false);
}

#[test]
fn a_target_is_told_once_by_the_first_rule_that_matches() {
    let set = bucket(vec![
        rule("b", "s3:ObjectCreated:*", "images/", ""),
        rule("a", "s3:ObjectCreated:*", "", ".jpg"),
        rule("a", "s3:ObjectCreated:Put", "images/", ".jpg"),
        rule("a", "s3:ObjectRemoved:*", "", ""),
        rule("B", "s3:ObjectCreated:*", "", ""),
    ]);
    let ids = |key: &str, event: EventName| -> Vec<&str> {
        set.matches("photos", key, event).into_iter().map(Rule::id).collect()
    };
    assert_eq!(ids("images/x.jpg", EventName::ObjectCreatedPut), ["0", "1"]);
    assert_eq!(ids("x.jpg", EventName::ObjectCreatedPut), ["1", "4"]);
    assert_eq!(ids("x.jpg", EventName::ObjectRemovedDelete), ["3"]);
    assert_eq!(ids("x.jpg", EventName::ObjectAccessedGet), Vec::<&str>::new());
    assert!(set.matches("other", "x.jpg", EventName::ObjectCreatedPut).is_empty());
}

#[test]
fn global_rules_are_for_all_buckets_and_come_after_the_buckets_own() {
    let global = BucketRules::new(vec![
        rule("a", "s3:ObjectCreated:*", "", "").with_id("global a").unwrap(),
        rule("c", "s3:ObjectCreated:*", "", "").with_id("global c").unwrap(),
        rule("c", "s3:BucketCreated:*", "", "").with_id("buckets").unwrap(),
    ]);
    let set = bucket(vec![rule("a", "s3:ObjectCreated:Put", "", ".jpg")]).with_global(global.clone());
    let ids = |bucket: &str, key: &str, event: EventName| -> Vec<&str> {
        set.matches(bucket, key, event).into_iter().map(Rule::id).collect()
    };
    assert_eq!(ids("photos", "x.jpg", EventName::ObjectCreatedPut), ["0", "global c"]);
    assert_eq!(ids("photos", "x.png", EventName::ObjectCreatedPut), ["global a", "global c"]);
    assert_eq!(ids("made later", "x", EventName::ObjectCreatedPut), ["global a", "global c"]);
    assert_eq!(ids("made later", "", EventName::BucketCreated), ["buckets"]);
    assert!(set.wants("any", EventName::BucketCreated) && !set.wants("any", EventName::ObjectAccessedGet));
    assert_eq!(set.global(), &global);
}

#[test]
fn the_rules_of_a_bucket_are_replaced_and_end_with_it() {
    let set = bucket(vec![rule("a", "s3:ObjectCreated:*", "", "")]);
    let other = set.with_bucket("music", with_ids(vec![rule("b", "s3:ObjectRemoved:*", "", "")]));
    let mut buckets: Vec<&str> = other.buckets().map(|(bucket, _)| bucket).collect();
    buckets.sort_unstable();
    assert_eq!(buckets, ["music", "photos"]);
    let gone = other.with_bucket("photos", BucketRules::default());
    assert!(gone.matches("photos", "x", EventName::ObjectCreatedPut).is_empty());
    assert!(gone.bucket("photos").is_none() && gone.bucket("music").is_some());
    assert!(
        !gone.wants("photos", EventName::ObjectCreatedPut)
            && gone.wants("music", EventName::ObjectRemovedNoOp)
    );
    assert_eq!(
        set.matches("photos", "x", EventName::ObjectCreatedPut).len(),
        1,
        "a snapshot stays as it was"
    );
}

#[test]
fn nothing_is_allocated_for_the_answer_that_nobody_is_told() {
    let rules = (0..1000).map(|nth| rule("t", "s3:ObjectCreated:*", &format!("folder/{nth}/"), ".jpg"));
    let set = bucket(rules.collect());
    assert_eq!(set.matches("photos", "folder/17/x.png", EventName::ObjectCreatedPut).capacity(), 0);
    assert_eq!(set.matches("photos", "folder/17/x.jpg", EventName::ObjectCreatedPut).len(), 1);
}

#[test]
fn updates_by_several_threads_are_none_of_them_lost() {
    let live = LiveRules::new(RuleSet::default());
    thread::scope(|scope| {
        for thread in 0..4 {
            let live = &live;
            scope.spawn(move || {
                for nth in 0..50 {
                    let rules = BucketRules::new(vec![rule("t", "s3:ObjectCreated:*", "", "")]);
                    live.update(|set| set.with_bucket(&format!("{thread}-{nth}"), rules.clone()));
                    let snapshot = live.snapshot();
                    let found =
                        snapshot.matches(&format!("{thread}-{nth}"), "x", EventName::ObjectCreatedPut);
                    assert_eq!(found.len(), 1);
                }
            });
        }
    });
    assert_eq!(live.snapshot().buckets().count(), 200);
}

/// The obvious way: every rule is asked.
fn naive<'a>(sources: [&'a [Rule]; 2], key: &str, event: EventName) -> Vec<&'a Rule> {
    let mut found: Vec<&Rule> = Vec::new();
    for rule in sources.into_iter().flatten() {
        let matches = rule.events().iter().any(|selector| selector.events().contains(event))
            && key.starts_with(rule.filter().prefix())
            && key.ends_with(rule.filter().suffix());
        if matches && !found.iter().any(|other| other.destination() == rule.destination()) {
            found.push(rule);
        }
    }
    found
}

fn rules() -> impl Strategy<Value = BucketRules> {
    let selectors = vec![
        EventSelector::Group(EventGroup::ObjectCreated),
        EventSelector::One(EventName::ObjectCreatedPut),
        EventSelector::One(EventName::ObjectRemovedDelete),
        EventSelector::Group(EventGroup::All),
    ];
    let events = proptest::sample::subsequence(selectors, 1..3);
    let rule =
        ("[a-d]", events, "[ab/é]{0,4}", "[ab/é]{0,4}").prop_map(|(target, events, prefix, suffix)| {
            Rule::new(arn(&target), events).unwrap().with_filter(KeyFilter::new(prefix, suffix).unwrap())
        });
    proptest::collection::vec(rule, 0..40).prop_map(with_ids)
}

proptest! {
    #[test]
    fn whatever_the_rules_they_match_as_if_each_were_asked(
        global in rules(),
        own in rules(),
        keys in proptest::collection::vec("[ab/é]{0,8}", 1..20),
    ) {
        let set = RuleSet::new(global.clone(), [("photos".to_owned(), own.clone())]);
        for key in keys {
            for event in [EventName::ObjectCreatedPut, EventName::ObjectCreatedCopy, EventName::ObjectRemovedDelete] {
                let expect = naive([own.rules(), global.rules()], &key, event);
                prop_assert_eq!(set.matches("photos", &key, event), expect, "{}", key);
                let expect = naive([&[], global.rules()], &key, event);
                prop_assert_eq!(set.matches("music", &key, event), expect, "{}", key);
            }
        }
    }
}
