//! Characters beside which a text may be cut, whatever its normalizer.

/// Whether a character stands for itself: it begins and ends a grapheme cluster beside
/// others of this kind, composes with none of them, and is no mark, no white space and
/// no apostrophe. These are the usual letters, ideographs, syllables, digits, symbols
/// and punctuation; what is left out costs a longer part of a text, and no more.
pub fn is_plain(c: char) -> bool {
    match c as u32 {
        0x21..=0x7E => c != '\'',
        0xC0..=0x24F => true,                                // Latin
        0x391..=0x3CE | 0x400..=0x481 | 0x48A..=0x4FF => true, // Greek, Cyrillic
        0x531..=0x556 | 0x561..=0x586 => true,               // Armenian
        0x5D0..=0x5EA => true,                               // Hebrew
        0x620..=0x64A | 0x660..=0x66F | 0x671..=0x6D3 => true, // Arabic
        0x904..=0x939 | 0x985..=0x9B9 => true,               // Devanagari, Bengali
        0xE01..=0xE30 | 0xE32 | 0xE40..=0xE46 => true,       // Thai, without its marks and U+0E33
        0x10D0..=0x10FA => true,                             // Georgian
        0x2010..=0x2018 | 0x201A..=0x2027 => true,           // dashes, quotes, dots
        0x2190..=0x2BFF => true,                             // arrows, signs, shapes
        0x3001..=0x3011 | 0x3041..=0x3096 | 0x30A1..=0x30FC => true, // kana and their punctuation
        0x3400..=0x9FFF | 0x20000..=0x2A6DF => true,         // ideographs
        0xAC00..=0xD7A3 => true,                             // Hangul syllables
        0xFF01..=0xFF06 | 0xFF08..=0xFF5E => true,           // wide forms of ASCII
        0x1F300..=0x1F3FA | 0x1F400..=0x1FAFF => true,       // emoji, without the tones of skin
        _ => false,
    }
}

/// Whether a character ends a grapheme cluster where a plain one follows: a plain one,
/// or a vowel or another sign that is no virama, to which the next letter would belong.
pub fn ends_cluster(c: char) -> bool {
    is_plain(c) || is_sign(c)
}

fn is_sign(c: char) -> bool {
    matches!(c as u32, 0x64B..=0x652 | 0x900..=0x903 | 0x93E..=0x94C | 0x981..=0x983 | 0x9BE..=0x9CC | 0xE31 | 0xE34..=0xE3A | 0xE47..=0xE4E)
}

/// Whether a plain character or a sign is a letter that is no capital, or what belongs
/// to one, of those that are certain.
pub fn is_small(c: char) -> bool {
    is_sign(c) || matches!(c, 'a'..='z' | 'α'..='ω' | 'а'..='я' | '\u{5D0}'..='\u{5EA}' | '\u{620}'..='\u{64A}'
        | '\u{904}'..='\u{939}' | '\u{E01}'..='\u{E30}' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
}
