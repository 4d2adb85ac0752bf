//! How far the tokens of a long piece are decided by its beginning.
//!
//! Of neighbouring places in a piece at least one lies between two of its tokens, if no
//! token of the vocabulary holds all the characters between them. The tokens before that
//! place are those of the piece's beginning up to it: BPE joins nothing across it, so
//! that both sides are merged as if alone, and Unigram's best path to a place looks at
//! nothing behind it. Which of the places it is depends on what follows, which is not
//! read; but where the beginnings up to all of them have the same first ids, these are
//! the piece's. The piece may go on behind the part that is given here.

use tokenizers::models::ModelWrapper;
use tokenizers::{Model, Token};

/// Characters with a place between any two: as few of these as the vocabulary allows.
const SPANS: [usize; 4] = [16, 32, 64, 128];

/// How far behind the last token that is wanted the places end, in characters: first
/// near, for what they cost, then further.
const BEHIND: [usize; 2] = [96, 1024];

pub struct Inside {
    /// The tokens that can hold the shortest span.
    tokens: Vec<String>,
    /// Characters that are no token are left out of a piece, and what is on both sides joins.
    drops: bool,
}

impl Inside {
    /// None where the argument does not hold.
    pub fn new(tokenizer: &tokenizers::Tokenizer) -> Option<Inside> {
        let model = tokenizer.get_model();
        let vocabulary = model.get_vocab();
        let bytes = (0..=255u8).all(|b| vocabulary.contains_key(&format!("<0x{b:02X}>")));
        let (fallback, drops) = match model {
            ModelWrapper::BPE(m) => {
                let alone = |s: &Option<String>| s.as_deref().unwrap_or("").is_empty();
                let joins = |unknown: &String| vocabulary.keys().any(|t| t != unknown && t.contains(unknown.as_str()));
                if m.dropout.unwrap_or(0.0) != 0.0
                    || !alone(&m.continuing_subword_prefix)
                    || !alone(&m.end_of_word_suffix)
                    || m.unk_token.as_ref().is_some_and(joins)
                    || m.byte_fallback && vocabulary.keys().any(|t| t.len() != 6 && t.contains("<0x"))
                {
                    return None;
                }
                (m.byte_fallback, m.unk_token.is_none() && !m.byte_fallback)
            }
            ModelWrapper::Unigram(m) => (m.byte_fallback(), false),
            _ => return None,
        };
        if fallback && !bytes {
            return None;
        }
        let tokens = vocabulary.into_keys().filter(|t| t.len() > SPANS[0]).collect();
        Some(Inside { tokens, drops })
    }

    /// More than `most` tokens that a piece begins with, of which the first `most` + 1 are
    /// those of any piece that begins like this one: none if the piece is too short, and
    /// an empty list if its beginnings do not agree.
    pub fn beginning(&self, model: &ModelWrapper, piece: &str, most: usize, work: &mut usize) -> tokenizers::Result<Option<Vec<Token>>> {
        *work += piece.len();
        let all = model.tokenize(piece)?;
        let Some(wanted) = all.get(most).map(|t| t.offsets.1) else { return Ok(None) };
        let mut tried = None;
        for behind in BEHIND {
            let Some(places) = self.places(model, piece, wanted, behind) else { break };
            let agreed = agree(model, piece, &places, most, work)?;
            if agreed.as_ref().is_some_and(|tokens| !tokens.is_empty()) {
                return Ok(agreed);
            }
            tried = agreed.or(tried);
        }
        Ok(tried)
    }

    /// As many neighbouring places as are enough, the last one a character before the
    /// `behind`th after the byte `wanted`. None if the piece ends before.
    fn places(&self, model: &ModelWrapper, piece: &str, wanted: usize, behind: usize) -> Option<Vec<usize>> {
        let end = wanted + piece.get(wanted..)?.char_indices().nth(behind)?.0;
        for span in SPANS {
            let places: Vec<usize> = piece[..end].char_indices().rev().map(|(i, _)| i).take(span).collect();
            let covered = &piece[*places.last()?..end];
            if places.len() < span || self.drops && covered.chars().any(|c| model.token_to_id(c.encode_utf8(&mut [0; 4])).is_none()) {
                return None;
            }
            if !self.tokens.iter().any(|t| t.contains(covered)) {
                return Some(places[..span - 1].to_vec());
            }
        }
        None
    }
}

/// The tokens of the piece up to the first place, if those up to all others begin with
/// the same `most` + 1 ids; an empty list if they do not, and none if one of them has no
/// token behind these.
fn agree(model: &ModelWrapper, piece: &str, places: &[usize], most: usize, work: &mut usize) -> tokenizers::Result<Option<Vec<Token>>> {
    let mut first: Vec<Token> = Vec::new();
    for &place in places {
        *work += place;
        let tokens = model.tokenize(&piece[..place])?;
        if tokens.len() < most + 2 {
            return Ok(None);
        }
        let same = |(a, b): (&Token, &Token)| a.id == b.id;
        if first.is_empty() {
            first = tokens;
        } else if !first.iter().zip(&tokens).take(most + 1).all(same) {
            return Ok(Some(Vec::new()));
        }
    }
    Ok(Some(first))
}
