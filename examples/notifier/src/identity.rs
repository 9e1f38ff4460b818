//! Keys and deployment id of this server: made at its first start, kept in its folder.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// By what clients know this server, and it knows them.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) deployment_id: String,
}

impl Identity {
    /// That of the folder. `KOLUMN_ACCESS_KEY` and `KOLUMN_SECRET_KEY` count more than the keys that are kept.
    pub(crate) fn of(data: &Path) -> Result<Self, String> {
        fs::create_dir_all(data).map_err(|error| format!("{}: {error}", data.display()))?;
        let path = data.join("identity");
        let failed = |error| format!("{}: {error}", path.display());
        let mut identity = match fs::read_to_string(&path) {
            Ok(text) => {
                parse(&text).ok_or_else(|| format!("{}: it is not what was written", path.display()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = make()?;
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
                    .map_err(failed)?;
                file.write_all(made.text().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
                made
            }
            Err(error) => return Err(failed(error)),
        };
        let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (given("KOLUMN_ACCESS_KEY"), given("KOLUMN_SECRET_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                identity.access_key = access_key;
                identity.secret_key = secret_key;
            }
            (None, None) => {}
            _ => {
                return Err(
                    "`KOLUMN_ACCESS_KEY` and `KOLUMN_SECRET_KEY` are set together or not at all".into()
                );
            }
        }
        Ok(identity)
    }

    fn text(&self) -> String {
        let Self { access_key, secret_key, deployment_id } = self;
        format!("{access_key}\n{secret_key}\n{deployment_id}\n")
    }
}

fn parse(text: &str) -> Option<Identity> {
    let mut lines = text.lines().map(str::to_owned);
    let mut next = || lines.next().filter(|line| !line.is_empty());
    Some(Identity { access_key: next()?, secret_key: next()?, deployment_id: next()? })
}

fn make() -> Result<Identity, String> {
    let mut random = [0; 76];
    getrandom::fill(&mut random).map_err(|error| format!("random numbers: {error}"))?;
    let (access, rest) = random.split_at(20);
    let (secret, id) = rest.split_at(40);
    // 32 signs, so that each has the same chance.
    let text = |bytes: &[u8], signs: &[u8; 32]| -> String {
        bytes.iter().filter_map(|byte| signs.get(usize::from(byte % 32))).copied().map(char::from).collect()
    };
    let mut deployment_id = String::new();
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            deployment_id.push('-');
        }
        // The version and the variant of a random UUID.
        let byte = match at {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        // Writing into a text never fails.
        let _ = write!(deployment_id, "{byte:02x}");
    }
    Ok(Identity {
        access_key: text(access, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        secret_key: text(secret, b"abcdefghijkmnpqrstuvwxyz23456789"),
        deployment_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Identity::of(folder.path()).expect("made");
        assert_eq!((first.access_key.len(), first.secret_key.len(), first.deployment_id.len()), (20, 40, 36));
        assert_eq!(Identity::of(folder.path()).expect("kept").text(), first.text());
        fs::write(folder.path().join("identity"), "half").expect("written");
        assert!(Identity::of(folder.path()).is_err());
    }
}
