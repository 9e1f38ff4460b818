//! The dull twin of the generated code: reads the schemas at run time and writes random messages byte by byte.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use kolumn_kafka_wire::ApiKey;

/// A message as its schema describes it.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    versions: (i16, i16),
    flexible: (i16, i16),
    fields: Vec<Field>,
    structs: HashMap<String, Vec<Field>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request(ApiKey),
    Response(ApiKey),
    Other,
}

#[derive(Clone)]
struct Field {
    name: String,
    kind: String,
    versions: (i16, i16),
    null: (i16, i16),
    tag: Option<u32>,
    default: String,
    classic: bool,
}

const NEVER: (i16, i16) = (0, -1);

/// Every message of every schema file.
pub(crate) fn all() -> Vec<Schema> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "kw"));
    paths.sort();
    paths.iter().flat_map(|path| parse(&fs::read_to_string(path).unwrap())).collect()
}

fn parse(text: &str) -> Vec<Schema> {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'));
    let head: Vec<_> = lines.next().unwrap().split(' ').collect();
    let mut schemas: Vec<Schema> = Vec::new();
    // the struct whose fields stand at each depth; "" is the message itself
    let mut open: Vec<String> = Vec::new();
    for line in lines {
        let words: Vec<_> = line.trim_start().split(' ').collect();
        let depth = (line.len() - line.trim_start().len()) / 2;
        if depth == 0 {
            schemas.push(message(&head, &words));
            open = vec![String::new()];
            continue;
        }
        open.truncate(depth);
        let schema = schemas.last_mut().unwrap();
        if words[0] == "struct" {
            open.push(words[1].to_owned());
            schema.structs.entry(words[1].to_owned()).or_default();
            continue;
        }
        let field = field(&words);
        let element = field.kind.trim_matches(['[', ']']).to_owned();
        let parent = open.last().unwrap();
        let siblings = if parent.is_empty() {
            &mut schema.fields
        } else {
            schema.structs.entry(parent.clone()).or_default()
        };
        siblings.push(field);
        open.push(element);
    }
    schemas
}

fn message(head: &[&str], words: &[&str]) -> Schema {
    let (name, kind, rest) = match (head, words[0]) {
        (["api", key, name], "request") => {
            (format!("{name}Request"), Kind::Request(ApiKey::new(key.parse().unwrap())), &words[1..])
        }
        (["api", key, name], "response") => {
            (format!("{name}Response"), Kind::Response(ApiKey::new(key.parse().unwrap())), &words[1..])
        }
        _ => (words[1].to_owned(), Kind::Other, &words[2..]),
    };
    let flexible = if rest.len() > 2 { range(rest[2]) } else { NEVER };
    Schema { name, kind, versions: range(rest[0]), flexible, fields: Vec::new(), structs: HashMap::new() }
}

fn field(words: &[&str]) -> Field {
    let after = |word: &str, skip: usize| {
        words.iter().position(|candidate| *candidate == word).map(|position| words[position + skip])
    };
    Field {
        name: words[0].trim_end_matches(':').to_owned(),
        kind: words[1].to_owned(),
        versions: range(words[2]),
        null: after("null", 1).filter(|next| *next != "ignorable").map_or(NEVER, range),
        tag: after("tag", 1).map(|tag| tag.parse().unwrap()),
        default: after("=", 1).unwrap_or_default().to_owned(),
        classic: words.contains(&"classic"),
    }
}

fn range(text: &str) -> (i16, i16) {
    match text.split_once('-') {
        Some((min, max)) => (min.parse().unwrap(), max.parse().unwrap()),
        None => match text.strip_suffix('+') {
            Some(min) => (min.parse().unwrap(), i16::MAX),
            None => (text.parse().unwrap(), text.parse().unwrap()),
        },
    }
}

fn within(version: i16, range: (i16, i16)) -> bool {
    range.0 <= version && version <= range.1
}

impl Schema {
    pub(crate) fn versions(&self) -> impl Iterator<Item = i16> {
        self.versions.0..=self.versions.1
    }

    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        within(version, self.flexible)
    }

    /// A random message of this version, as bytes. Canonical: nothing in it could be written otherwise.
    pub(crate) fn random_bytes(&self, version: i16, random: &mut Random, unknown_tags: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut twin = Twin { schema: self, version, random, unknown_tags };
        twin.put_struct(&self.fields, &mut out, 0);
        out
    }
}

struct Twin<'s> {
    schema: &'s Schema,
    version: i16,
    random: &'s mut Random,
    unknown_tags: bool,
}

impl Twin<'_> {
    fn put_struct(&mut self, fields: &[Field], out: &mut Vec<u8>, depth: usize) {
        let flexible = self.schema.is_flexible(self.version);
        let present = fields.iter().filter(|field| within(self.version, field.versions));
        let (tagged, plain): (Vec<_>, Vec<_>) = present.partition(|field| field.tag.is_some());
        for field in plain {
            let null = within(self.version, field.null) && self.random.below(4) == 0;
            self.put(field, null, flexible && !field.classic, out, depth);
        }
        if !flexible {
            return;
        }
        let mut tags: Vec<(u32, Vec<u8>)> = Vec::new();
        for field in tagged {
            let mut data = Vec::new();
            self.put(field, false, true, &mut data, depth);
            let mut default = Vec::new();
            self.put_default(field, &mut default);
            if self.random.below(2) == 0 && data != default {
                tags.push((field.tag.unwrap(), data));
            }
        }
        if self.unknown_tags && self.random.below(3) == 0 {
            for tag in [50, 63, 64, 1_000_000] {
                if self.random.below(2) == 0 {
                    let data = self.random.bytes(5);
                    tags.push((tag, data));
                }
            }
        }
        tags.sort();
        put_unsigned_varint(tags.len(), out);
        for (tag, data) in tags {
            put_unsigned_varint(tag as usize, out);
            put_unsigned_varint(data.len(), out);
            out.extend(data);
        }
    }

    fn put(&mut self, field: &Field, null: bool, flexible: bool, out: &mut Vec<u8>, depth: usize) {
        let kind = field.kind.as_str();
        let nullable = within(self.version, field.null);
        if let Some(element) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            let count = if depth > 3 { 0 } else { self.random.below(4) };
            put_len((!null).then_some(count), flexible, 4, out);
            let element =
                Field { kind: element.to_owned(), null: NEVER, default: String::new(), ..field.clone() };
            for _ in 0..if null { 0 } else { count } {
                self.put(&element, false, flexible, out, depth + 1);
            }
            return;
        }
        match kind {
            "bool" => out.push(u8::from(self.random.below(2) == 1)),
            "i8" => out.extend(self.random.bytes_exact(1)),
            "i16" | "u16" => out.extend(self.random.bytes_exact(2)),
            "i32" | "u32" => out.extend(self.random.bytes_exact(4)),
            "i64" => out.extend(self.random.bytes_exact(8)),
            // any finite number: NaN is not equal to itself
            "f64" => out.extend(f64::from(u32::try_from(self.random.below(1 << 30)).unwrap()).to_be_bytes()),
            "uuid" => out.extend(self.random.bytes_exact(16)),
            "string" => {
                let text = self.random.text();
                put_len((!null).then_some(text.len()), flexible, 2, out);
                out.extend(if null { Vec::new() } else { text.into_bytes() });
            }
            "bytes" | "records" => {
                let data = self.random.bytes(700);
                put_len((!null).then_some(data.len()), flexible, 4, out);
                out.extend(if null { Vec::new() } else { data });
            }
            name => {
                if nullable {
                    out.push(if null { 0xff } else { 1 });
                }
                if !null {
                    let schema = self.schema;
                    self.put_struct(&schema.structs[name], out, depth + 1);
                }
            }
        }
    }

    fn put_default(&mut self, field: &Field, out: &mut Vec<u8>) {
        let number: i64 = match field.default.as_str() {
            "" | "null" => 0,
            "true" => 1,
            number => number.parse().unwrap(),
        };
        match field.kind.as_str() {
            "bool" | "i8" => out.extend(&number.to_be_bytes()[7..]),
            "i16" | "u16" => out.extend(&number.to_be_bytes()[6..]),
            "i32" | "u32" => out.extend(&number.to_be_bytes()[4..]),
            "i64" => out.extend(number.to_be_bytes()),
            "uuid" => out.extend([0; 16]),
            _ if field.default == "null" => out.push(0),
            kind if kind.starts_with('[') || kind == "string" => out.push(1),
            name => {
                let schema = self.schema;
                for field in &schema.structs[name] {
                    self.put_default(field, out);
                }
                out.push(0);
            }
        }
        assert!(field.kind != "bytes" && field.kind != "records", "`{}` is tagged", field.name);
    }
}

fn put_len(len: Option<usize>, flexible: bool, width: usize, out: &mut Vec<u8>) {
    match (flexible, len) {
        (true, len) => put_unsigned_varint(len.map_or(0, |len| len + 1), out),
        (false, Some(len)) => out.extend(&len.to_be_bytes()[8 - width..]),
        (false, None) => out.extend(&[0xff; 4][..width]),
    }
}

pub(crate) fn put_unsigned_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(u8::try_from(value % 0x80).unwrap() | 0x80);
        value /= 0x80;
    }
    out.push(u8::try_from(value).unwrap());
}

/// A small deterministic source of random numbers (`SplitMix64`).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn bytes_exact(&mut self, len: usize) -> Vec<u8> {
        // zeros and ones are the interesting values
        match self.below(4) {
            0 => vec![0; len],
            1 => vec![0xff; len],
            _ => (0..len).map(|_| self.next().to_be_bytes()[0]).collect(),
        }
    }

    fn bytes(&mut self, limit: usize) -> Vec<u8> {
        let len = self.below(limit);
        self.bytes_exact(len)
    }

    fn text(&mut self) -> String {
        let letters = ['a', 'Z', '0', '-', ' ', 'é', '名', '🦀'];
        let len = if self.below(20) == 0 { 130 } else { self.below(6) };
        (0..len).map(|_| letters[self.below(letters.len())]).collect()
    }
}
