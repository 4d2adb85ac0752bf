package tokenize

import "encoding/binary"

// charsmapKeepsASCII reports whether SentencePiece's precompiled map replaces no
// graphic ASCII character and no space that stands alone. The map begins with the
// size of a double-array trie in bytes and the trie, both of little-endian 32-bit
// units; a character is replaced if the trie has it as a key.
func charsmapKeepsASCII(charsmap []byte) bool {
	return noRootEdge(charsmap, ' ', 126, true)
}

// charsmapKeepsIdeographs reports whether the map has no key that begins with the
// first byte of one of U+4E00 to U+9FFF.
func charsmapKeepsIdeographs(charsmap []byte) bool {
	return noRootEdge(charsmap, 0xE4, 0xE9, false)
}

// noRootEdge reports whether the trie is whole and none of these bytes leads away
// from its root, or, with keys, none is a key by itself.
func noRootEdge(charsmap []byte, first, last uint32, keys bool) bool {
	if len(charsmap) < 4 {
		return false
	}
	size := int64(binary.LittleEndian.Uint32(charsmap))
	if size < 4 || 4+size > int64(len(charsmap)) {
		return false
	}
	trie := charsmap[4 : 4+size]
	root := binary.LittleEndian.Uint32(trie)
	offset := root >> 10 << (root & (1 << 9) >> 6)
	for c := first; c <= last; c++ {
		at := int64(offset^c) * 4
		if at+4 > size {
			continue
		}
		unit := binary.LittleEndian.Uint32(trie[at:])
		if isKey := unit>>8&1 == 1; unit&(1<<31|0xFF) == c && (isKey || !keys) {
			return false
		}
	}
	return true
}
