//! The rules on the disk: a file for each bucket, replaced as a whole.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::HubError;
use crate::rules::{BucketRules, LiveRules, RuleSet};

/// The rules in a folder, and those in force, which are the same. All calls block.
#[derive(Debug, Clone)]
pub(super) struct StoredRules {
    dir: Arc<PathBuf>,
    live: Arc<LiveRules>,
    /// One writes at a time, so that what is in force last is what was written last.
    writing: Arc<Mutex<()>>,
}

/// What a file has: the rules as S3 writes them, and their topics, which S3 has no place for.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// The bucket's name; none for the rules of all buckets.
    bucket: Option<String>,
    rules: String,
    /// Of each rule its topic, if any has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    topics: Vec<Option<String>>,
}

impl StoredRules {
    /// Puts the folder's rules in force.
    pub(super) fn open(dir: PathBuf, live: Arc<LiveRules>) -> Result<Self, HubError> {
        let failed = |error| HubError::io(&dir, error);
        fs::create_dir_all(&dir).map_err(failed)?;
        let mut global = BucketRules::default();
        let mut buckets = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension() == Some(OsStr::new("tmp")) {
                // Whoever wrote it ended before it counted.
                fs::remove_file(&path).map_err(|error| HubError::io(&path, error))?;
                continue;
            }
            if path.extension() != Some(OsStr::new("json")) {
                continue;
            }
            let (bucket, rules) = read(&path)?;
            match bucket {
                Some(bucket) => buckets.push((bucket, rules)),
                None => global = rules,
            }
        }
        let set = RuleSet::new(global, buckets);
        live.update(|_| set.clone());
        Ok(Self { dir: Arc::new(dir), live, writing: Arc::default() })
    }

    /// Replaces the rules of a bucket, or those of all.
    pub(super) fn set(&self, bucket: Option<&str>, rules: &BucketRules) -> Result<(), HubError> {
        let _writing = self.writing.lock();
        let path = self.dir.join(file_name(bucket)?);
        let written = if rules.is_empty() { self.remove(&path) } else { self.write(&path, bucket, rules) };
        written.map_err(|error| HubError::io(&path, error))?;
        self.live.update(|set| match bucket {
            Some(bucket) => set.with_bucket(bucket, rules.clone()),
            None => set.with_global(rules.clone()),
        });
        Ok(())
    }

    fn write(&self, path: &Path, bucket: Option<&str>, rules: &BucketRules) -> io::Result<()> {
        let topics: Vec<Option<String>> =
            rules.rules().iter().map(|rule| rule.topic().map(ToString::to_string)).collect();
        let topics = if topics.iter().any(Option::is_some) { topics } else { Vec::new() };
        let stored = Stored { bucket: bucket.map(Into::into), rules: rules.to_xml(), topics };
        let temporary = path.with_extension("tmp");
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(&stored)?)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        self.sync()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Ok(()) => self.sync(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A file's name outlives a loss of power when its folder is synced.
    fn sync(&self) -> io::Result<()> {
        File::open(&*self.dir)?.sync_all()
    }
}

fn read(path: &Path) -> Result<(Option<String>, BucketRules), HubError> {
    let wrong = |reason: String| HubError::Rules { path: path.into(), reason };
    let text = fs::read(path).map_err(|error| HubError::io(path, error))?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let rules = BucketRules::from_xml(stored.rules.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    if stored.topics.is_empty() {
        return Ok((stored.bucket, rules));
    }
    let mut topics = stored.topics.into_iter();
    let with_topic = rules.rules().iter().cloned().map(|rule| match topics.next().flatten() {
        Some(topic) => rule.with_topic(topic),
        None => Ok(rule),
    });
    let rules = with_topic.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    Ok((stored.bucket, BucketRules::new(rules)))
}

/// A name that is a file's whatever the bucket's has in it.
fn file_name(bucket: Option<&str>) -> Result<String, HubError> {
    let Some(bucket) = bucket else { return Ok("global.json".into()) };
    let mut name = String::from("bucket-");
    for byte in bucket.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.') {
            name.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name.push_str(".json");
    if bucket.is_empty() || name.len() > FILE_NAME_LEN_MAX {
        return Err(HubError::BucketName { bucket: bucket.into() });
    }
    Ok(name)
}

/// Of the usual file systems.
const FILE_NAME_LEN_MAX: usize = 255;
