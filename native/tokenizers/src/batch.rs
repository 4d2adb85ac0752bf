//! Encodes many documents in one call, from and into flat memory of the caller.

use tokenizers::{Encoding, Tokenizer};

use crate::boundary::Cuts;
use crate::daulet::UnifiedTokenizer;
use crate::load::{guarded, hugging_face};
use crate::long::{Long, GROWTH};

/// How to encode: `localembed_limits` in native.h.
#[repr(C)]
pub struct Limits {
    prompt: *const u8,
    prompt_len: usize,
    /// Most ids a document may have, special tokens included.
    max_tokens: usize,
    /// Bytes of a long text that are tokenized first.
    first_bytes: usize,
    tail: usize,
    cuts: Cuts,
    /// What localembed_long returned for this tokenizer, or null.
    long: *const Long,
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
    /// Bytes that were tokenized, some of them more than once.
    work: usize,
}

impl Ids {
    pub unsafe fn say(&mut self, reason: &str) {
        self.message_len = reason.len().min(self.message_room);
        std::ptr::copy_nonoverlapping(reason.as_ptr(), self.message, self.message_len);
    }
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
    out.work = 0;
    let mut written = 0usize;
    let mut buffer = String::new();
    for i in 0..texts.count {
        let doc = *texts.docs.add(i) as usize;
        let start = if doc == 0 { 0 } else { *texts.ends.add(doc - 1) as usize };
        let bytes = slice(texts.data.add(start), *texts.ends.add(doc) as usize - start);
        let encoded = guarded(|| {
            let room = std::slice::from_raw_parts_mut(out.ids.add(written), limits.max_tokens);
            encode(hugging_face(&*tokenizer)?, limits, bytes, &mut buffer, room, &mut out.work)
        });
        match encoded {
            Ok((n, truncated)) => {
                written += n;
                *out.ends.add(i) = written as i64;
                *out.truncated.add(i) = truncated;
            }
            Err(reason) => {
                out.say(&reason);
                return i;
            }
        }
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
    work: &mut usize,
) -> Result<(usize, bool), String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let prompt = std::str::from_utf8(unsafe { slice(limits.prompt, limits.prompt_len) }).map_err(|e| e.to_string())?;
    let mut from = limits.first_bytes;
    let long = unsafe { limits.long.as_ref() }.filter(|_| text.len() >= from);
    if let Some(long) = long {
        let found = long.beginning(tokenizer, prompt, text, limits.max_tokens, from).map_err(|e| e.to_string())?;
        *work += found.work;
        if let Some(tokens) = found.tokens {
            let wrapped = tokenizer.post_process(Encoding::from_tokens(tokens, 0), None, true).map_err(|e| e.to_string())?;
            return keep(wrapped.get_ids(), limits, room);
        }
    }
    loop {
        let end = limits.cuts.prefix(text, from);
        buffer.clear();
        buffer.push_str(prompt);
        limits.cuts.squeeze(&text[..end], buffer);
        *work += buffer.len();
        let encoding = tokenizer.encode_fast(buffer.as_str(), true).map_err(|e| e.to_string())?;
        if encoding.get_ids().len() > limits.max_tokens || end == text.len() {
            return keep(encoding.get_ids(), limits, room);
        }
        from = end.saturating_mul(GROWTH);
    }
}

/// Copies the ids that the limit allows: the first ones, and the special ones at the end.
fn keep(ids: &[u32], limits: &Limits, room: &mut [u32]) -> Result<(usize, bool), String> {
    if ids.is_empty() {
        return Err("the tokenizer returned no tokens".to_string());
    }
    if ids.len() <= limits.max_tokens {
        room[..ids.len()].copy_from_slice(ids);
        return Ok((ids.len(), false));
    }
    let kept = limits.max_tokens - limits.tail;
    room[..kept].copy_from_slice(&ids[..kept]);
    room[kept..].copy_from_slice(&ids[ids.len() - limits.tail..]);
    Ok((limits.max_tokens, true))
}

/// A slice that may have no address when it is empty, as Go passes it.
pub unsafe fn slice<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, len)
    }
}
