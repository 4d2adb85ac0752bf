//! Long texts: only as much of one is tokenized as decides the ids that are kept.
//!
//! A part of a text, up to a place that `cut` allows, goes through the tokenizer's own
//! normalizer and pre-tokenizer. The pieces that come out are those of the whole text,
//! but for the last one, which may be only the beginning of the whole text's. A piece
//! is tokenized by itself, so that the ids of all but the last are final; `inside` says
//! how much of a long last one is.
//!
//! Why: a place stands between two plain characters, or between a sign and one (see `plain`).
//!
//! - The normalizers that the Go side admits look at a character, or at a grapheme
//!   cluster, or at a base and its marks: each of these ends in front of a plain
//!   character, so that what they make of the part is the beginning of what they make of
//!   the text.
//!   Replacements of ASCII punctuation are kept away from by letters and digits alone.
//! - The pre-tokenizers that it admits go from left to right by the classes of
//!   characters. What could end a piece differently because of what follows is white
//!   space (`\s+(?!\S)`, `\s*[\r\n]+`), which has a character behind it here; a
//!   contraction (`'re`), in which no place stands; and a pattern that tells capitals and
//!   goes back over them: with one, no place stands behind a letter that may be one.
//! - An added token in the text that reaches across the place forbids it.

use std::sync::OnceLock;

use tokenizers::{AddedToken, Model, Normalizer, OffsetReferential, OffsetType, PreTokenizer, Token, Tokenizer};

use crate::inside::Inside;
use crate::plain::{ends_cluster, is_plain, is_small};

/// How much longer the next part is where one was too short.
pub const GROWTH: usize = 4;

/// Places that are looked at closely for one part, and long pieces that are tried inside.
const MOST_PLACES: usize = 256;
const MOST_UNLIKE: usize = 2;

/// What is known of a tokenizer whose texts may be taken in parts. It belongs to that
/// tokenizer alone.
pub struct Long {
    small: bool,
    letters: bool,
    added: Vec<AddedToken>,
    inside: OnceLock<Option<Inside>>,
}

/// The tokens of a text's beginning, and how many bytes were tokenized for them.
pub struct Beginning {
    pub tokens: Option<Vec<Token>>,
    pub work: usize,
}

impl Long {
    /// `small`: no places behind letters that may be capitals; `letters`: only between
    /// letters and digits.
    pub fn new(tokenizer: &Tokenizer, small: bool, letters: bool) -> Long {
        let added = tokenizer.get_added_tokens_decoder().into_values().collect();
        Long { small, letters, added, inside: OnceLock::new() }
    }

    /// The first tokens of the prompt and the text together, more than `most`, without
    /// special ones; none where only the whole text decides. The first part ends at or
    /// after the byte `from`.
    pub fn beginning(&self, tokenizer: &Tokenizer, prompt: &str, text: &str, most: usize, mut from: usize) -> tokenizers::Result<Beginning> {
        let (mut work, mut unlike) = (0, 0);
        while let Some(end) = self.cut(tokenizer, text, from) {
            work += prompt.len() + end;
            let part = [prompt, &text[..end]].concat();
            let mut pieces = tokenizer.get_added_vocabulary().extract_and_normalize(tokenizer.get_normalizer(), &part);
            if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
                pre_tokenizer.pre_tokenize(&mut pieces)?;
            }
            let mut tokens: Vec<Token> = Vec::new();
            let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
            let (last, finals) = match splits.split_last() {
                Some((last, finals)) => (last, finals),
                None => (&("", (0, 0), &None), &[][..]),
            };
            for (piece, _, found) in finals {
                match found {
                    Some(found) => tokens.extend(found.iter().cloned()),
                    None => tokens.extend(tokenizer.get_model().tokenize(piece)?),
                }
                if tokens.len() > most {
                    return Ok(Beginning { tokens: Some(tokens), work });
                }
            }
            if let (piece, _, None) = last {
                if unlike < MOST_UNLIKE {
                    let inside = self.inside.get_or_init(|| Inside::new(tokenizer));
                    let tried = match inside {
                        Some(inside) => inside.beginning(tokenizer.get_model(), piece, most - tokens.len(), &mut work)?,
                        None => None,
                    };
                    match tried {
                        Some(more) if !more.is_empty() => {
                            tokens.extend(more);
                            return Ok(Beginning { tokens: Some(tokens), work });
                        }
                        Some(_) => unlike += 1,
                        None => {}
                    }
                }
            }
            from = end.saturating_mul(GROWTH);
        }
        Ok(Beginning { tokens: None, work })
    }

    /// The first place at or after `from` where the text may be cut, if there is one
    /// among the first ones that look like it.
    fn cut(&self, tokenizer: &Tokenizer, text: &str, from: usize) -> Option<usize> {
        let mut start = from.saturating_sub(8).min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let (mut before, mut last, mut looked) = ('\'', '\'', 0);
        for (i, c) in text[start..].char_indices() {
            let end = start + i;
            let small = !self.small || is_small(last) || !last.is_alphabetic();
            if end >= from && small && ends_cluster(last) && is_plain(c) && before != '\'' {
                if self.stays(tokenizer, [before, last, c]) && !self.added.iter().any(|token| reaches(tokenizer, token, text, end, [last, c]))  {
                    return Some(end);
                }
                looked += 1;
                if looked == MOST_PLACES {
                    return None;
                }
            }
            (before, last) = (last, c);
        }
        None
    }

    /// Whether the characters before a place and the one behind it are still there when
    /// they are normalized, as such characters.
    fn stays(&self, tokenizer: &Tokenizer, around: [char; 3]) -> bool {
        around.into_iter().enumerate().all(|(i, c)| {
            let becomes = normalized(tokenizer, &format!("a{c}a"));
            let becomes = becomes.trim_start_matches(['▁', ' ']).strip_prefix('a').and_then(|s| s.strip_suffix('a')).unwrap_or("");
            let plain = |c: char| !c.is_whitespace() && c != '▁' && (!self.letters || c.is_alphanumeric());
            let capital = becomes.chars().any(char::is_uppercase);
            !becomes.is_empty() && !becomes.contains('\'') && (i == 0 || becomes.chars().all(plain) && (!self.small || capital == c.is_uppercase()))
        })
    }
}

/// Whether an added token may stand in the text so that it reaches across the place between
/// these two characters.
fn reaches(tokenizer: &Tokenizer, token: &AddedToken, text: &str, end: usize, between: [char; 2]) -> bool {
    if !token.normalized {
        let (mut a, mut b) = (end.saturating_sub(token.content.len()), (end + token.content.len()).min(text.len()));
        while !text.is_char_boundary(a) {
            a -= 1;
        }
        while !text.is_char_boundary(b) {
            b += 1;
        }
        return text[a..b].contains(token.content.as_str());
    }
    // It is looked for, normalized, in the normalized text, where anything may be gone
    // from between its characters, but not these two.
    let of = |s: &str| {
        let becomes = normalized(tokenizer, s);
        let prepended = if s.starts_with('▁') { None } else { becomes.strip_prefix('▁') };
        prepended.unwrap_or(&becomes).to_owned()
    };
    let (content, before, after) = (of(&token.content), of(&between[0].to_string()), of(&between[1].to_string()));
    let ends = |a: &str, b: &str| a.ends_with(b) || b.ends_with(a);
    let starts = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
    content.is_empty() || content.char_indices().skip(1).any(|(i, _)| ends(&content[..i], &before) && starts(&content[i..], &after))
}

/// What the tokenizer's normalizer makes of a text; nothing where it fails.
fn normalized(tokenizer: &Tokenizer, text: &str) -> String {
    let mut string = text.into();
    match tokenizer.get_normalizer().map(|n| n.normalize(&mut string)) {
        Some(Err(_)) => String::new(),
        _ => string.get().to_owned(),
    }
}
