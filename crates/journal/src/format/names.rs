//! Names of the files in a log's directory.

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// A file of the log, with its base position.
    Log(u64),
    /// A preallocated file without content, with a number that no other has.
    Spare(u64),
    /// A checkpoint, with its position.
    Checkpoint(u64),
    /// A checkpoint that is being written.
    CheckpointDraft,
    /// Room kept for the next checkpoint on a full disk.
    Reserve,
    /// Bytes cut from the log's end: the position, and the owner epoch that cut them.
    Torn(u64, u32),
}

impl Name {
    /// What this name stands for; `None` for files that are not the log's.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let parsed = match name {
            "checkpoint.draft" => Self::CheckpointDraft,
            "checkpoint.reserve" => Self::Reserve,
            _ => {
                let (stem, kind) = name.rsplit_once('.')?;
                match kind {
                    "journal" => Self::Log(number(stem)?),
                    "spare" => Self::Spare(number(stem)?),
                    "checkpoint" => Self::Checkpoint(number(stem)?),
                    "torn" => {
                        let (position, epoch) = stem.split_once('-')?;
                        Self::Torn(number(position)?, epoch.parse().ok()?)
                    }
                    _ => return None,
                }
            }
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log(base) => write!(f, "{base:016x}.journal"),
            Self::Spare(id) => write!(f, "{id:016x}.spare"),
            Self::Checkpoint(position) => write!(f, "{position:016x}.checkpoint"),
            Self::CheckpointDraft => f.write_str("checkpoint.draft"),
            Self::Reserve => f.write_str("checkpoint.reserve"),
            Self::Torn(position, epoch) => write!(f, "{position:016x}-{epoch}.torn"),
        }
    }
}

fn number(hex: &str) -> Option<u64> {
    (hex.len() == 16).then(|| u64::from_str_radix(hex, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_were_made_from_and_others_do_not() {
        let all = [
            Name::Log(4096),
            Name::Spare(u64::MAX),
            Name::Checkpoint(7),
            Name::CheckpointDraft,
            Name::Reserve,
            Name::Torn(8192, 3),
        ];
        for name in all {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for other in
            ["", "lock", "1.journal", "000000000000100G.journal", "0000000000001000.journal~", "x.torn"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
