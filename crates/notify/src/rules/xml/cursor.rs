//! A walk over the elements of an XML document, in which whatever is not asked for is an error.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use crate::rules::error::{RuleError, quoted};

/// Where a document is being read. Entities are the five of XML and characters by number; a document type, which could
/// declare others, is refused.
pub(super) struct Cursor<'a> {
    reader: Reader<&'a [u8]>,
    /// The element that was read last is an empty one, `<Id/>`, whose end has not been told.
    ending: bool,
}

enum Token {
    Start(String),
    End,
    Text(String),
    Eof,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(document: &'a str) -> Self {
        Self { reader: Reader::from_str(document), ending: false }
    }

    /// Enters the document's only element, which has to have this name; `inside` reads it to its end.
    pub(super) fn root(
        &mut self,
        name: &str,
        inside: impl FnOnce(&mut Self) -> Result<(), RuleError>,
    ) -> Result<(), RuleError> {
        let mut inside = Some(inside);
        loop {
            match self.next()? {
                Token::Text(text) if is_blank(&text) => {}
                Token::Start(found) if found == name => match inside.take() {
                    Some(inside) => inside(self)?,
                    None => return Err(self.malformed("a second root element")),
                },
                Token::Eof if inside.is_none() => return Ok(()),
                Token::Eof => return Err(self.malformed(format!("there is no element `{name}`"))),
                Token::Start(found) => {
                    return Err(self.malformed(format!("{} instead of `{name}`", quoted(&found))));
                }
                Token::Text(_) | Token::End => return Err(self.malformed("text outside of the root element")),
            }
        }
    }

    /// Tells the children of the element just entered, to its end. `child` reads each to its end.
    pub(super) fn children(
        &mut self,
        mut child: impl FnMut(&mut Self, &str) -> Result<(), RuleError>,
    ) -> Result<(), RuleError> {
        loop {
            match self.next()? {
                Token::Start(name) => child(self, &name)?,
                Token::End => return Ok(()),
                Token::Text(text) if is_blank(&text) => {}
                Token::Text(text) => return Err(self.malformed(format!("the text {}", quoted(text.trim())))),
                Token::Eof => return Err(self.malformed("the document ends within an element")),
            }
        }
    }

    /// The text of the element just entered, to its end.
    pub(super) fn text(&mut self) -> Result<String, RuleError> {
        let mut text = String::new();
        loop {
            match self.next()? {
                Token::Text(more) => text.push_str(&more),
                Token::End => return Ok(text),
                Token::Start(name) => return Err(self.unexpected(&name)),
                Token::Eof => return Err(self.malformed("the document ends within an element")),
            }
        }
    }

    /// Puts the text of the element just entered where there may be only one.
    pub(super) fn text_once(&mut self, name: &str, slot: &mut Option<String>) -> Result<(), RuleError> {
        if slot.is_some() {
            return Err(self.malformed(format!("a second element `{name}`")));
        }
        *slot = Some(self.text()?);
        Ok(())
    }

    /// The element is none of those that may be here.
    pub(super) fn unexpected(&self, name: &str) -> RuleError {
        self.malformed(format!("unexpected element {}", quoted(name)))
    }

    pub(super) fn malformed(&self, why: impl Into<String>) -> RuleError {
        RuleError::malformed(why).within(format_args!("byte {}", self.reader.buffer_position()))
    }

    fn next(&mut self) -> Result<Token, RuleError> {
        if std::mem::take(&mut self.ending) {
            return Ok(Token::End);
        }
        loop {
            let event = self.reader.read_event().map_err(|error| {
                let at = self.reader.error_position();
                RuleError::malformed(error.to_string()).within(format_args!("byte {at}"))
            })?;
            return Ok(match event {
                Event::Start(start) => self.start(&start)?,
                Event::Empty(start) => {
                    self.ending = true;
                    self.start(&start)?
                }
                Event::End(_) => Token::End,
                Event::Text(text) => Token::Text(text.xml10_content().into_owned()),
                Event::CData(text) => Token::Text(text.xml10_content().into_owned()),
                Event::GeneralRef(reference) => Token::Text(self.resolve(&reference)?),
                Event::Decl(declaration) => {
                    self.check_encoding(&declaration)?;
                    continue;
                }
                Event::Comment(_) | Event::PI(_) => continue,
                Event::DocType(_) => return Err(self.malformed("a document type")),
                Event::Eof => Token::Eof,
            });
        }
    }

    /// The element's name without its prefix. Its attributes mean nothing here, but have to be well-formed; whether
    /// one is there twice is not asked, since the answer takes time with the square of their number.
    fn start(&self, start: &BytesStart<'_>) -> Result<Token, RuleError> {
        let mut attributes = start.attributes();
        for attribute in attributes.with_checks(false) {
            attribute.map_err(|error| self.malformed(format!("an attribute: {error}")))?;
        }
        Ok(Token::Start(start.local_name().into_inner().to_owned()))
    }

    fn resolve(&self, reference: &BytesRef<'_>) -> Result<String, RuleError> {
        let character = reference.resolve_char_ref().map_err(|error| self.malformed(error.to_string()))?;
        match character {
            Some(character) => Ok(character.to_string()),
            None => match resolve_xml_entity(reference) {
                Some(text) => Ok(text.to_owned()),
                None => Err(self.malformed(format!("the entity {} is not declared", quoted(reference)))),
            },
        }
    }

    /// The document is read as UTF-8; if it says that it is something else, its letters would be wrong.
    fn check_encoding(&self, declaration: &BytesDecl<'_>) -> Result<(), RuleError> {
        let Some(encoding) = declaration.encoding() else { return Ok(()) };
        let encoding = encoding.map_err(|error| self.malformed(format!("the declaration: {error}")))?;
        if ["utf-8", "us-ascii"].iter().any(|known| encoding.eq_ignore_ascii_case(known)) {
            return Ok(());
        }
        Err(self.malformed(format!("the encoding {} instead of UTF-8", quoted(&encoding))))
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}
