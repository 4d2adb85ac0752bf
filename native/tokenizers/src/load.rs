//! Loads a tokenizer.json and says what it is like.

use std::panic::{catch_unwind, AssertUnwindSafe};

use tokenizers::{Encoding, Token, Tokenizer};

use crate::batch::{slice, Ids};
use crate::daulet::UnifiedTokenizer;
use crate::long::Long;

/// What a loaded tokenizer is like: `localembed_facts` in native.h.
#[repr(C)]
pub struct Facts {
    /// The largest token id, plus one.
    vocab_size: u32,
    /// Special tokens put before and after every text.
    head: u32,
    tail: u32,
}

/// Loads a tokenizer.json, for tokenizers_free_tokenizer to free. Null where it cannot be
/// used; `out.message` says why. Some files make the library panic.
///
/// # Safety
/// `bytes` must have `len` bytes, and `out` memory for a message.
#[no_mangle]
pub unsafe extern "C" fn localembed_load(bytes: *const u8, len: usize, out: *mut Ids) -> *mut UnifiedTokenizer {
    std::panic::set_hook(Box::new(|_| {})); // what a panic says goes into the message
    let bytes = slice(bytes, len);
    match guarded(|| Tokenizer::from_bytes(bytes).map_err(|e| e.to_string())) {
        Ok(tokenizer) => Box::into_raw(Box::new(UnifiedTokenizer::HuggingFace(tokenizer))),
        Err(reason) => {
            (*out).say(&reason);
            std::ptr::null_mut()
        }
    }
}

/// Prepares a tokenizer for texts in parts, see `Long::new`; null if it cannot be.
///
/// # Safety
/// `tokenizer` must be live, and outlive what is returned.
#[no_mangle]
pub unsafe extern "C" fn localembed_long(tokenizer: *const UnifiedTokenizer, small: bool, letters: bool) -> *mut Long {
    match guarded(|| Ok(Long::new(hugging_face(&*tokenizer)?, small, letters))) {
        Ok(long) => Box::into_raw(Box::new(long)),
        Err(_) => std::ptr::null_mut(),
    }
}

/// # Safety
/// `long` must come from localembed_long, or be null, and be freed once.
#[no_mangle]
pub unsafe extern "C" fn localembed_free_long(long: *mut Long) {
    if !long.is_null() {
        drop(Box::from_raw(long));
    }
}

/// What a call into the library gives, and a panic of it as an error.
pub fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(format!("the tokenizer panicked: {}", text.unwrap_or_default()))
    })
}

/// Describes the tokenizer that `localembed_load` returned. False if it
/// cannot be used.
///
/// # Safety
/// `tokenizer` must be live, `facts` writable.
#[no_mangle]
pub unsafe extern "C" fn localembed_describe(tokenizer: *const UnifiedTokenizer, facts: *mut Facts) -> bool {
    match guarded(|| describe(hugging_face(&*tokenizer)?)) {
        Ok(found) => {
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
    if special.iter().filter(|&&s| s == 0).count() != 1 {
        return Err("the post-processor drops or repeats the text".to_string());
    }
    let head = special.iter().take_while(|&&s| s == 1).count();
    let tail = special.len() - head - 1;
    Ok(Facts { vocab_size, head: head as u32, tail: tail as u32 })
}

pub fn hugging_face(tokenizer: &UnifiedTokenizer) -> Result<&Tokenizer, String> {
    match tokenizer {
        UnifiedTokenizer::HuggingFace(t) => Ok(t),
        UnifiedTokenizer::Tiktoken(..) => Err("not a tokenizer.json tokenizer".to_string()),
    }
}
