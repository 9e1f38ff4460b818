//! Reads the message schemas of `crates/kafka-wire/schemas`; their README.md is the legend.

use std::fs;
use std::path::Path;

/// One schema file.
pub(super) struct File {
    /// Key and name, if the file describes an API.
    pub(super) api: Option<(i16, String)>,
    pub(super) messages: Vec<Message>,
}

pub(super) struct Message {
    pub(super) name: String,
    pub(super) versions: Range,
    pub(super) flexible: Option<Range>,
    pub(super) unstable: bool,
    pub(super) docs: Vec<String>,
    pub(super) fields: Vec<Field>,
    /// Structs that several fields share.
    pub(super) structs: Vec<Struct>,
}

pub(super) struct Struct {
    pub(super) name: String,
    pub(super) versions: Range,
    pub(super) fields: Vec<Field>,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) versions: Range,
    pub(super) null: Option<Range>,
    pub(super) tag: Option<(u32, Range)>,
    pub(super) default: Option<String>,
    pub(super) ignorable: bool,
    pub(super) classic: bool,
    pub(super) docs: Vec<String>,
    /// The fields of the struct that is declared with this field.
    pub(super) fields: Vec<Field>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    /// `i8` to `i64`, `u16`, `u32`
    Integer(&'static str),
    Float,
    Uuid,
    ErrorCode,
    Text,
    Bytes,
    Records,
    Array(Box<Type>),
    Struct(String),
}

/// Versions, both ends included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: i16,
    pub(super) max: i16,
}

impl Range {
    pub(super) fn covers(self, other: Range) -> bool {
        self.min <= other.min && self.max >= other.max
    }

    pub(super) fn intersect(self, other: Range) -> Option<Range> {
        let both = Range { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }

    fn parse(text: &str) -> Option<Range> {
        if let Some(min) = text.strip_suffix('+') {
            return Some(Range { min: min.parse().ok()?, max: i16::MAX });
        }
        match text.split_once('-') {
            Some((min, max)) => Some(Range { min: min.parse().ok()?, max: max.parse().ok()? }),
            None => text.parse().ok().map(|only| Range { min: only, max: only }),
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, i16::MAX) => write!(f, "{min}+"),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}-{max}"),
        }
    }
}

/// Reads all schema files of a directory, by file name.
pub(super) fn read_all(directory: &Path) -> Result<Vec<File>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "kw"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            parse(&text).map_err(|(line, problem)| format!("{}:{line}: {problem}", path.display()))
        })
        .collect()
}

type Problem = (usize, &'static str);

struct Line<'t> {
    number: usize,
    depth: usize,
    text: &'t str,
    docs: Vec<String>,
}

fn parse(text: &str) -> Result<File, Problem> {
    let lines = significant_lines(text)?;
    let mut lines = lines.iter().peekable();
    let first = lines.next().ok_or((1, "the file is empty"))?;
    let api = match first.text.split(' ').collect::<Vec<_>>().as_slice() {
        ["api", key, name] => {
            Some((key.parse().map_err(|_| (first.number, "the key is no number"))?, (*name).to_owned()))
        }
        ["headers" | "data"] => None,
        _ => return Err((first.number, "`api KEY NAME`, `headers` or `data` expected")),
    };
    let mut messages = Vec::new();
    while let Some(line) = lines.next() {
        let mut message = parse_message(line, api.as_ref().map(|(_, name)| name.as_str()))?;
        let mut fields = Vec::new();
        while let Some(line) = lines.next_if(|line| line.depth > 0) {
            match line.text.split(' ').collect::<Vec<_>>().as_slice() {
                ["struct", name, versions] => {
                    let versions = range(line, versions)?;
                    message.structs.push(Struct {
                        name: (*name).to_owned(),
                        versions,
                        fields: parse_fields(&mut lines, line.depth + 1)?,
                    });
                }
                _ => fields.push(parse_field(line, &mut lines)?),
            }
        }
        message.fields = fields;
        messages.push(message);
    }
    Ok(File { api, messages })
}

/// Drops empty lines and gives comments to the line after them.
fn significant_lines(text: &str) -> Result<Vec<Line<'_>>, Problem> {
    let mut lines = Vec::new();
    let mut docs = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        let trimmed = raw.trim_start_matches(' ');
        if let Some(doc) = trimmed.strip_prefix("# ") {
            docs.push(doc.to_owned());
        } else if !trimmed.is_empty() {
            let indent = raw.len() - trimmed.len();
            if indent % 2 != 0 {
                return Err((number, "indentation is two blanks a level"));
            }
            lines.push(Line { number, depth: indent / 2, text: trimmed, docs: std::mem::take(&mut docs) });
        }
    }
    Ok(lines)
}

/// `request VERSIONS`, `response VERSIONS`, `header NAME VERSIONS`, `data NAME VERSIONS`, then
/// ` flexible VERSIONS`, ` unstable`.
fn parse_message(line: &Line<'_>, api: Option<&str>) -> Result<Message, Problem> {
    let words: Vec<_> = line.text.split(' ').collect();
    let (name, rest) = match (words.as_slice(), api) {
        (["request", rest @ ..], Some(api)) => (format!("{api}Request"), rest),
        (["response", rest @ ..], Some(api)) => (format!("{api}Response"), rest),
        (["header" | "data", name, rest @ ..], None) => ((*name).to_owned(), rest),
        _ => return Err((line.number, "a message expected")),
    };
    let (versions, flexible, unstable) = match rest {
        [versions] => (versions, None, false),
        [versions, "flexible", flexible] => (versions, Some(flexible), false),
        [versions, "flexible", flexible, "unstable"] => (versions, Some(flexible), true),
        _ => return Err((line.number, "`VERSIONS flexible VERSIONS` expected")),
    };
    let versions = range(line, versions)?;
    let flexible = flexible.map(|flexible| range(line, flexible)).transpose()?;
    let docs = line.docs.clone();
    Ok(Message { name, versions, flexible, unstable, docs, fields: Vec::new(), structs: Vec::new() })
}

type Lines<'l, 't> = std::iter::Peekable<std::slice::Iter<'l, Line<'t>>>;

fn parse_fields(lines: &mut Lines<'_, '_>, depth: usize) -> Result<Vec<Field>, Problem> {
    let mut fields = Vec::new();
    while let Some(line) = lines.next_if(|line| line.depth == depth) {
        fields.push(parse_field(line, lines)?);
    }
    Ok(fields)
}

/// `name: TYPE VERSIONS`, then ` null VERSIONS`, ` tag NUMBER VERSIONS`, ` = DEFAULT`, ` ignorable`, ` classic`.
fn parse_field(line: &Line<'_>, lines: &mut Lines<'_, '_>) -> Result<Field, Problem> {
    let (name, rest) = line.text.split_once(": ").ok_or((line.number, "`name: TYPE VERSIONS` expected"))?;
    let mut words = rest.split(' ');
    let mut word = |what| words.next().ok_or((line.number, what));
    let kind = parse_type(word("a type expected")?, name);
    let versions = range(line, word("versions expected")?)?;
    let mut field = Field {
        name: name.to_owned(),
        kind,
        versions,
        null: None,
        tag: None,
        default: None,
        ignorable: false,
        classic: false,
        docs: line.docs.clone(),
        fields: Vec::new(),
    };
    while let Ok(attribute) = word("") {
        match attribute {
            "null" => field.null = Some(range(line, word("versions expected")?)?),
            "tag" => {
                let number =
                    word("a tag expected")?.parse().map_err(|_| (line.number, "the tag is no number"))?;
                field.tag = Some((number, range(line, word("versions expected")?)?));
            }
            "=" => field.default = Some(word("a default expected")?.to_owned()),
            "ignorable" => field.ignorable = true,
            "classic" => field.classic = true,
            _ => return Err((line.number, "unknown attribute")),
        }
    }
    field.fields = parse_fields(lines, line.depth + 1)?;
    Ok(field)
}

fn parse_type(text: &str, field: &str) -> Type {
    if let Some(element) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return Type::Array(Box::new(parse_type(element, "")));
    }
    match text {
        "bool" => Type::Bool,
        "i8" => Type::Integer("i8"),
        "i16" if field.ends_with("error_code") => Type::ErrorCode,
        "i16" => Type::Integer("i16"),
        "i32" => Type::Integer("i32"),
        "i64" => Type::Integer("i64"),
        "u16" => Type::Integer("u16"),
        "u32" => Type::Integer("u32"),
        "f64" => Type::Float,
        "uuid" => Type::Uuid,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "records" => Type::Records,
        name => Type::Struct(name.to_owned()),
    }
}

fn range(line: &Line<'_>, text: &str) -> Result<Range, Problem> {
    Range::parse(text).ok_or((line.number, "versions are `3`, `3-5` or `3+`"))
}
