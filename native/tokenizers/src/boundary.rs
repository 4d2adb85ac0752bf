//! Which part of a long text has to be tokenized at all.
//!
//! Nothing here knows a tokenizer: the Go side passes the bytes in front of
//! which a text may be cut, having proved from tokenizer.json that the tokens of
//! the part before such a byte are the first tokens of the whole text.

/// The rules of one tokenizer. The layout is that of `localembed_cuts` in
/// internal/tokenize/native.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cuts {
    /// Nonzero for each ASCII byte in front of which a text may be cut; all zero
    /// where texts must not be cut or shortened.
    pub before: [u8; 128],
    /// Nonzero if a text may be cut in front of U+5000 to U+9FFF, each of which
    /// is a word of its own.
    pub before_ideograph: u8,
    /// A run of more than twice this many ASCII letters and digits is one
    /// unknown word, and one of white space none, however long: only so many at
    /// both ends are kept. 0 = never.
    pub run_end: u32,
}

impl Cuts {
    /// The first position at or after `from` where `text` may be cut, or its end.
    pub fn prefix(&self, text: &str, from: usize) -> usize {
        let bytes = text.as_bytes();
        if from >= bytes.len() {
            return bytes.len();
        }
        let ideographs = self.before_ideograph != 0;
        let found = bytes[from..].iter().position(|&b| match b {
            0..=127 => self.before[b as usize] != 0,
            0xE5..=0xE9 => ideographs,
            _ => false,
        });
        found.map_or(bytes.len(), |i| from + i)
    }

    /// Appends `text` to `out` with the middle of its long runs left out.
    pub fn squeeze(&self, text: &str, out: &mut String) {
        let keep = self.run_end as usize;
        let bytes = text.as_bytes();
        let (mut copied, mut start) = (0, 0);
        while keep > 0 && start < bytes.len() {
            let class = class(bytes[start]);
            let length = bytes[start..].iter().take_while(|&&b| self::class(b) == class).count();
            if class != Class::Other && length > 2 * keep {
                out.push_str(&text[copied..start + keep]);
                copied = start + length - keep;
            }
            start += length;
        }
        out.push_str(&text[copied..]);
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Class {
    Word,
    Space,
    Other,
}

fn class(b: u8) -> Class {
    match b {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Word,
        b' ' | b'\t' | b'\n' | b'\r' => Class::Space,
        _ => Class::Other,
    }
}
