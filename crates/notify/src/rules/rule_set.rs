//! The rules of all buckets, arranged for the question to whom an event goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::affix::AffixMap;
use super::bucket_rules::BucketRules;
use super::rule::Rule;
use crate::event::{EventName, EventSet};

/// The rules of all buckets at one moment, and the global ones, which every bucket has, also those that are yet to be
/// made.
///
/// ```
/// use kolumn_notify::event::EventName;
/// use kolumn_notify::rules::{BucketRules, KeyFilter, Rule, RuleSet};
///
/// let images = Rule::new("arn:minio:sqs::primary:kafka".parse()?, ["s3:ObjectCreated:*".parse()?])?
///     .with_filter(KeyFilter::new("images/", ".jpg")?);
/// let removals = Rule::new("arn:minio:sqs::audit:webhook".parse()?, ["s3:ObjectRemoved:*".parse()?])?;
///
/// let set = RuleSet::new(BucketRules::new(vec![removals]), [("photos".into(), BucketRules::new(vec![images]))]);
/// let targets = |bucket, key, event| -> Vec<String> {
///     set.matches(bucket, key, event).iter().map(|rule| rule.destination().to_string()).collect()
/// };
/// assert_eq!(targets("photos", "images/a.jpg", EventName::ObjectCreatedPut), ["arn:minio:sqs::primary:kafka"]);
/// assert!(targets("photos", "images/a.png", EventName::ObjectCreatedPut).is_empty());
/// assert_eq!(targets("any other", "key", EventName::ObjectRemovedDelete), ["arn:minio:sqs::audit:webhook"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    global: Arc<RuleIndex>,
    buckets: HashMap<Arc<str>, Arc<RuleIndex>>,
}

impl RuleSet {
    /// Rules for every bucket, and rules for some.
    #[must_use]
    pub fn new(global: BucketRules, buckets: impl IntoIterator<Item = (String, BucketRules)>) -> Self {
        let buckets = buckets.into_iter().filter(|(_, rules)| !rules.is_empty());
        let buckets = buckets.map(|(bucket, rules)| (bucket.into(), Arc::new(RuleIndex::new(rules))));
        Self { global: Arc::new(RuleIndex::new(global)), buckets: buckets.collect() }
    }

    /// The same with other rules for a bucket; with none, if they are empty, as when the bucket was removed. It takes
    /// time with the number of buckets that have rules; what is said about the others is shared.
    #[must_use]
    pub fn with_bucket(&self, bucket: &str, rules: BucketRules) -> Self {
        let mut set = self.clone();
        if rules.is_empty() {
            set.buckets.remove(bucket);
        } else {
            set.buckets.insert(bucket.into(), Arc::new(RuleIndex::new(rules)));
        }
        set
    }

    /// The same with other rules for every bucket.
    #[must_use]
    pub fn with_global(&self, rules: BucketRules) -> Self {
        Self { global: Arc::new(RuleIndex::new(rules)), buckets: self.buckets.clone() }
    }

    /// The rules of a bucket, without the global ones.
    #[must_use]
    pub fn bucket(&self, bucket: &str) -> Option<&BucketRules> {
        self.buckets.get(bucket).map(|index| &index.rules)
    }

    /// The rules that every bucket has.
    #[must_use]
    pub fn global(&self) -> &BucketRules {
        &self.global.rules
    }

    /// The buckets that have rules, in no order.
    pub fn buckets(&self) -> impl Iterator<Item = (&str, &BucketRules)> {
        self.buckets.iter().map(|(bucket, index)| (&**bucket, &index.rules))
    }

    /// To whom an event goes: one rule for each target, and of several rules with the same target the first. A bucket's
    /// rules come before the global ones, and each in the order of its configuration.
    ///
    /// `key` is the object's key as it was stored, not as events encode it; it is empty for an event of a bucket. A rule
    /// may name a target that does not exist any more; that is the caller's to see.
    ///
    /// Nothing is allocated if nothing matches. Of `n` rules with different prefixes, about `log n` are compared with
    /// the key, and of the rest only those looked at that begin the nearest of them; the same holds for the suffixes of the
    /// rules of one prefix.
    #[must_use]
    pub fn matches(&self, bucket: &str, key: &str, event: EventName) -> Vec<&Rule> {
        let mut found = Vec::new();
        if let Some(index) = self.buckets.get(bucket) {
            index.add_matches(key, event, &mut found);
        }
        self.global.add_matches(key, event, &mut found);
        found
    }

    /// Whether any rule of the bucket, or a global one, is for the event, whatever the key: if not, a server need not
    /// make it at all.
    #[must_use]
    pub fn wants(&self, bucket: &str, event: EventName) -> bool {
        let of_bucket = self.buckets.get(bucket).is_some_and(|index| index.events.contains(event));
        of_bucket || self.global.events.contains(event)
    }
}

/// Rules, arranged by prefix and below that by suffix.
#[derive(Debug, Clone, Default)]
struct RuleIndex {
    rules: BucketRules,
    events: EventSet,
    by_prefix: AffixMap<SamePrefix>,
}

/// The rules of one prefix.
#[derive(Debug, Clone, Default)]
struct SamePrefix {
    events: EventSet,
    /// By the suffix read backwards, the positions of the rules.
    by_suffix: AffixMap<Vec<usize>>,
}

impl RuleIndex {
    fn new(rules: BucketRules) -> Self {
        let mut by_prefix: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<usize>>> = BTreeMap::new();
        for (at, rule) in rules.rules().iter().enumerate() {
            let suffix = rule.filter().suffix().bytes().rev().collect();
            let prefix = rule.filter().prefix().into();
            by_prefix.entry(prefix).or_default().entry(suffix).or_default().push(at);
        }
        let events = |positions: &mut dyn Iterator<Item = &usize>| {
            let of_rule = positions.filter_map(|at| rules.rules().get(*at)).map(Rule::event_set);
            of_rule.fold(EventSet::default(), EventSet::union)
        };
        let by_prefix = by_prefix.into_iter().map(|(prefix, by_suffix)| {
            let events = events(&mut by_suffix.values().flatten());
            (prefix, SamePrefix { events, by_suffix: AffixMap::new(by_suffix) })
        });
        let by_prefix = AffixMap::new(by_prefix.collect());
        Self {
            events: rules.rules().iter().fold(EventSet::default(), |set, rule| set.union(rule.event_set())),
            by_prefix,
            rules,
        }
    }

    /// Adds the first rule for each target that is not there yet, in the order of the configuration.
    fn add_matches<'a>(&'a self, key: &str, event: EventName, found: &mut Vec<&'a Rule>) {
        if !self.events.contains(event) {
            return;
        }
        let mut firsts: Vec<(usize, &Rule)> = Vec::new();
        let prefixes =
            self.by_prefix.beginnings_of(key.bytes()).filter(|prefix| prefix.events.contains(event));
        for at in prefixes.flat_map(|prefix| prefix.by_suffix.beginnings_of(key.bytes().rev())).flatten() {
            let Some(rule) = self.rules.rules().get(*at).filter(|rule| rule.event_set().contains(event))
            else {
                continue;
            };
            if found.iter().any(|other| other.same_target(rule)) {
                continue;
            }
            match firsts.iter_mut().find(|(_, first)| first.same_target(rule)) {
                Some(first) if *at < first.0 => *first = (*at, rule),
                Some(_) => {}
                None => firsts.push((*at, rule)),
            }
        }
        firsts.sort_unstable_by_key(|(at, _)| *at);
        found.extend(firsts.into_iter().map(|(_, rule)| rule));
    }
}

/// The rules that are in force now. They are replaced as a whole: who has a snapshot keeps the one that it took, and
/// taking one never waits, also not while they are being replaced.
///
/// ```
/// use kolumn_notify::event::EventName;
/// use kolumn_notify::rules::{BucketRules, LiveRules, Rule};
///
/// let live = LiveRules::default();
/// let before = live.snapshot();
/// let rule = Rule::new("arn:minio:sqs::primary:kafka".parse()?, ["s3:ObjectCreated:*".parse()?])?;
/// live.update(|set| set.with_bucket("photos", BucketRules::new(vec![rule.clone()])));
/// assert!(before.matches("photos", "a.jpg", EventName::ObjectCreatedPut).is_empty());
/// assert_eq!(live.snapshot().matches("photos", "a.jpg", EventName::ObjectCreatedPut), [&rule]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct LiveRules {
    current: ArcSwap<RuleSet>,
}

impl LiveRules {
    /// These rules, to begin with.
    #[must_use]
    pub fn new(rules: RuleSet) -> Self {
        Self { current: ArcSwap::from_pointee(rules) }
    }

    /// The rules of this moment.
    #[must_use]
    pub fn snapshot(&self) -> Arc<RuleSet> {
        self.current.load_full()
    }

    /// Replaces the rules by what `change` makes of them. If they were replaced by another thread meanwhile, `change` is
    /// asked again, so that no update is lost.
    pub fn update(&self, mut change: impl FnMut(&RuleSet) -> RuleSet) {
        self.current.rcu(|rules| change(rules));
    }
}
