package tokenize

import "encoding/binary"

// charsmapKeepsASCII reports whether SentencePiece's precompiled map replaces no
// graphic ASCII character and no space that stands alone. The map begins with the
// size of a double-array trie in bytes and the trie, both of little-endian 32-bit
// units; a character is replaced if the trie has it as a key.
func charsmapKeepsASCII(charsmap []byte) bool {
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
	for c := uint32(' '); c < 127; c++ {
		at := int64(offset^c) * 4
		if at+4 > size {
			continue
		}
		unit := binary.LittleEndian.Uint32(trie[at:])
		if isKey := unit>>8&1 == 1; unit&(1<<31|0xFF) == c && isKey {
			return false
		}
	}
	return true
}
