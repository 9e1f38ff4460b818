//! Between schema and code: the structs of a message, each with what decides its code.

use super::schema::{Field, Message, Range, Type};

/// A struct of a message, with what decides its code.
pub(super) struct Part<'s> {
    pub(super) name: &'s str,
    pub(super) docs: Vec<String>,
    /// The versions in which it can occur.
    pub(super) versions: Range,
    pub(super) fields: &'s [Field],
    /// Whether it has a lifetime.
    pub(super) borrows: bool,
}

/// The message itself, then the structs inside it, in the order of the schema.
pub(super) fn flatten(message: &Message) -> Vec<Part<'_>> {
    let mut parts = vec![Part {
        name: &message.name,
        docs: message.docs.clone(),
        versions: message.versions,
        fields: &message.fields,
        borrows: false,
    }];
    inline_structs(&message.fields, &message.name, message.versions, &mut parts);
    for shared in &message.structs {
        let versions = shared.versions.intersect(message.versions).unwrap_or(shared.versions);
        let docs = vec![format!("A part of [`{}`].", message.name)];
        parts.push(Part { name: &shared.name, docs, versions, fields: &shared.fields, borrows: false });
        inline_structs(&shared.fields, &shared.name, versions, &mut parts);
    }
    // structs contain each other without cycles, so as many rounds as there are structs are enough
    for _ in 0..parts.len() {
        let borrowing: Vec<_> = parts.iter().filter(|part| part.borrows).map(|part| part.name).collect();
        for part in &mut parts {
            part.borrows = message.flexible.is_some()
                || part.fields.iter().any(|field| type_borrows(&field.kind, &borrowing));
        }
    }
    parts
}

fn inline_structs<'s>(fields: &'s [Field], parent: &str, versions: Range, parts: &mut Vec<Part<'s>>) {
    for field in fields.iter().filter(|field| !field.fields.is_empty()) {
        if let Some(name) = struct_name(&field.kind) {
            let versions = field.versions.intersect(versions).unwrap_or(field.versions);
            let docs = vec![format!("See [`{parent}::{}`].", super::rust::ident(&field.name))];
            parts.push(Part { name, docs, versions, fields: &field.fields, borrows: false });
            inline_structs(&field.fields, name, versions, parts);
        }
    }
}

/// The struct that a field holds, one or many.
pub(super) fn struct_name(kind: &Type) -> Option<&str> {
    match kind {
        Type::Struct(name) => Some(name),
        Type::Array(element) => struct_name(element),
        _ => None,
    }
}

fn type_borrows(kind: &Type, borrowing: &[&str]) -> bool {
    match kind {
        Type::Text | Type::Bytes | Type::Records | Type::Array(_) => true,
        Type::Struct(name) => borrowing.contains(&name.as_str()),
        _ => false,
    }
}
