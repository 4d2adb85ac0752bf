//! Encodes many documents in one call, from and into flat memory of the caller.

use std::panic::{catch_unwind, AssertUnwindSafe};

use tokenizers::{Encoding, Token, Tokenizer};

use crate::boundary::Cuts;
use crate::daulet::UnifiedTokenizer;

/// Bytes of a long text tokenized first, per token of the limit. English has
/// four to five bytes a token; what is too little is doubled.
const FIRST_BYTES_PER_TOKEN: usize = 8;

/// What a loaded tokenizer is like: `localembed_facts` in native.h.
#[repr(C)]
pub struct Facts {
    /// The largest token id, plus one.
    vocab_size: u32,
    /// Special tokens put before and after every text.
    head: u32,
    tail: u32,
}

/// How to encode: `localembed_limits` in native.h.
#[repr(C)]
pub struct Limits {
    prompt: *const u8,
    prompt_len: usize,
    /// Most ids a document may have, special tokens included.
    max_tokens: usize,
    tail: usize,
    cuts: Cuts,
}

/// The documents of a call: `localembed_texts` in native.h. Text i is
/// `data[ends[docs[i]-1]..ends[docs[i]]]`.
#[repr(C)]
pub struct Texts {
    data: *const u8,
    ends: *const i64,
    docs: *const i32,
    count: usize,
}

/// Where the result goes: `localembed_ids` in native.h. `ids` has room for
/// `count * max_tokens`, the others for `count`.
#[repr(C)]
pub struct Ids {
    ids: *mut u32,
    ends: *mut i64,
    truncated: *mut bool,
    message: *mut u8,
    message_room: usize,
    message_len: usize,
}

/// Describes the tokenizer that `tokenizers_from_bytes` returned. False if it
/// cannot be used.
///
/// # Safety
/// `tokenizer` must be live, `facts` writable.
#[no_mangle]
pub unsafe extern "C" fn localembed_describe(tokenizer: *const UnifiedTokenizer, facts: *mut Facts) -> bool {
    let described = catch_unwind(AssertUnwindSafe(|| describe(hugging_face(&*tokenizer)?)));
    match described {
        Ok(Ok(found)) => {
            *facts = found;
            true
        }
        _ => false,
    }
}

fn describe(tokenizer: &Tokenizer) -> Result<Facts, String> {
    let vocab_size = tokenizer.get_vocab(true).values().max().map_or(0, |id| id + 1);
    let word = Encoding::from_tokens(vec![Token::new(0, "a".into(), (0, 1))], 0);
    let wrapped = tokenizer.post_process(word, None, true).map_err(|e| e.to_string())?;
    let special = wrapped.get_special_tokens_mask();
    let head = special.iter().take_while(|&&s| s == 1).count();
    let tail = special.len().checked_sub(head + 1).ok_or("the post-processor drops the text")?;
    Ok(Facts { vocab_size, head: head as u32, tail: tail as u32 })
}

/// Encodes the documents in their order and returns how many it has encoded.
/// Fewer than asked means that the next one failed, and `out.message` says why.
///
/// # Safety
/// `tokenizer` must be live, and the memory as the structs above say.
#[no_mangle]
pub unsafe extern "C" fn localembed_encode(
    tokenizer: *const UnifiedTokenizer,
    limits: *const Limits,
    texts: *const Texts,
    out: *mut Ids,
) -> usize {
    let (limits, texts, out) = (&*limits, &*texts, &mut *out);
    let mut written = 0usize;
    let mut buffer = String::new();
    for i in 0..texts.count {
        let doc = *texts.docs.add(i) as usize;
        let start = if doc == 0 { 0 } else { *texts.ends.add(doc - 1) as usize };
        let bytes = slice(texts.data.add(start), *texts.ends.add(doc) as usize - start);
        let encoded = catch_unwind(AssertUnwindSafe(|| {
            let room = std::slice::from_raw_parts_mut(out.ids.add(written), limits.max_tokens);
            encode(hugging_face(&*tokenizer)?, limits, bytes, &mut buffer, room)
        }));
        let reason = match encoded {
            Ok(Ok((n, truncated))) => {
                written += n;
                *out.ends.add(i) = written as i64;
                *out.truncated.add(i) = truncated;
                continue;
            }
            Ok(Err(reason)) => reason,
            Err(_) => "the tokenizer panicked".to_string(),
        };
        out.message_len = reason.len().min(out.message_room);
        std::ptr::copy_nonoverlapping(reason.as_ptr(), out.message, out.message_len);
        return i;
    }
    texts.count
}

/// Writes the ids of one document into `room` and returns their number and
/// whether some were cut off.
fn encode(
    tokenizer: &Tokenizer,
    limits: &Limits,
    text: &[u8],
    buffer: &mut String,
    room: &mut [u32],
) -> Result<(usize, bool), String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let prompt = std::str::from_utf8(unsafe { slice(limits.prompt, limits.prompt_len) }).map_err(|e| e.to_string())?;
    let mut from = limits.max_tokens.saturating_mul(FIRST_BYTES_PER_TOKEN);
    loop {
        let end = limits.cuts.prefix(text, from);
        buffer.clear();
        buffer.push_str(prompt);
        limits.cuts.squeeze(&text[..end], buffer);
        let encoding = tokenizer.encode_fast(buffer.as_str(), true).map_err(|e| e.to_string())?;
        let ids = encoding.get_ids();
        if ids.is_empty() {
            return Err("the tokenizer returned no tokens".to_string());
        }
        if ids.len() > limits.max_tokens {
            let kept = limits.max_tokens - limits.tail;
            room[..kept].copy_from_slice(&ids[..kept]);
            room[kept..].copy_from_slice(&ids[ids.len() - limits.tail..]);
            return Ok((limits.max_tokens, true));
        }
        if end == text.len() {
            room[..ids.len()].copy_from_slice(ids);
            return Ok((ids.len(), false));
        }
        from = end.saturating_mul(2);
    }
}

fn hugging_face(tokenizer: &UnifiedTokenizer) -> Result<&Tokenizer, String> {
    match tokenizer {
        UnifiedTokenizer::HuggingFace(t) => Ok(t),
        UnifiedTokenizer::Tiktoken(..) => Err("not a tokenizer.json tokenizer".to_string()),
    }
}

/// A slice that may have no address when it is empty, as Go passes it.
unsafe fn slice<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, len)
    }
}
