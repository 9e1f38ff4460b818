//! Tags of objects, for a storage that keeps none: a file for each object that has any.
//!
//! ```text
//! <folder>/<digest of the bucket>/<digest of the key>.json      {"bucket":…,"key":…,"tags":[["name","value"],…]}
//! ```
//!
//! A file is written under another name, synced, and renamed. Which buckets have tags is known in memory, so that one
//! that has none costs its objects no look at the disk.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::ids::digest;

/// Names and values, in the order in which they were given.
pub(super) type TagList = Vec<(String, String)>;

/// Under this name in place of a bucket's are the tags of uploads that are not completed, by their ids. No bucket has it.
pub(super) const UPLOADS: &str = "/uploads";

#[derive(Debug)]
pub(super) struct Tags {
    folder: Arc<Path>,
    /// The folders of buckets that have tags, or had.
    known: OnceCell<Mutex<HashSet<String>>>,
    temporary: AtomicU64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Tagged {
    bucket: String,
    key: String,
    tags: TagList,
}

impl Tags {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder: folder.into(), known: OnceCell::new(), temporary: AtomicU64::new(0) }
    }

    /// Whether an object of the bucket may have tags.
    pub(super) async fn has(&self, bucket: &str) -> io::Result<bool> {
        Ok(self.known().await?.lock().contains(&digest(bucket.as_bytes())))
    }

    pub(super) async fn read(&self, bucket: &str, key: &str) -> io::Result<Option<TagList>> {
        if !self.has(bucket).await? {
            return Ok(None);
        }
        let path = self.path(bucket, key);
        blocking(move || match fs::read(&path) {
            Ok(bytes) => {
                let tagged: Tagged = serde_json::from_slice(&bytes).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
                })?;
                Ok(Some(tagged.tags))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Ready when they are on the disk.
    pub(super) async fn write(&self, bucket: &str, key: &str, tags: TagList) -> io::Result<()> {
        let path = self.path(bucket, key);
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{number}.{TEMPORARY}"));
        let tagged = Tagged { bucket: bucket.into(), key: key.into(), tags };
        let root = Arc::clone(&self.folder);
        self.known().await?.lock().insert(digest(bucket.as_bytes()));
        blocking(move || {
            let folder = path.parent().unwrap_or(&root);
            if !folder.exists() {
                fs::create_dir_all(folder)?;
                sync(&root)?;
            }
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(&tagged)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            sync(folder)
        })
        .await
    }

    /// Ready when they are gone from the disk.
    pub(super) async fn remove(&self, bucket: &str, key: &str) -> io::Result<()> {
        if !self.has(bucket).await? {
            return Ok(());
        }
        let path = self.path(bucket, key);
        let root = Arc::clone(&self.folder);
        blocking(move || match fs::remove_file(&path) {
            Ok(()) => sync(path.parent().unwrap_or(&root)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }

    pub(super) async fn remove_bucket(&self, bucket: &str) -> io::Result<()> {
        if !self.has(bucket).await? {
            return Ok(());
        }
        let name = digest(bucket.as_bytes());
        let folder = self.folder.join(&name);
        let root = Arc::clone(&self.folder);
        blocking(move || match fs::remove_dir_all(folder) {
            Ok(()) => sync(&root),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        })
        .await?;
        self.known().await?.lock().remove(&name);
        Ok(())
    }

    fn path(&self, bucket: &str, key: &str) -> PathBuf {
        let mut path = self.folder.join(digest(bucket.as_bytes()));
        path.push(digest(key.as_bytes()));
        path.with_extension("json")
    }

    async fn known(&self) -> io::Result<&Mutex<HashSet<String>>> {
        let folder = Arc::clone(&self.folder);
        let reading = || blocking(move || buckets(&folder).map(Mutex::new));
        self.known.get_or_try_init(reading).await
    }
}

/// The names of the folders; removes what a write that did not come to its end has left in them.
fn buckets(folder: &Path) -> io::Result<HashSet<String>> {
    fs::create_dir_all(folder)?;
    let mut names = HashSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(entry.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == TEMPORARY) {
                fs::remove_file(path)?;
            }
        }
        names.extend(entry.file_name().into_string().ok());
    }
    Ok(names)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

const TEMPORARY: &str = "tmp";
