package selftest

// fixedTexts are what every self-test runs: plain, different from each other, and
// longer than the lengths they are cut to.
var fixedTexts = []string{
	"The lighthouse keeper wrote down the wind, the waves and every ship that passed before the lamp went out at dawn, and then slept until noon with the window open.",
	"A sorted list can be searched in a number of steps that grows with the logarithm of its length, which is why libraries keep their cards in order and never in heaps.",
	"Zwölf Boxkämpfer jagten Viktor quer über den großen Sylter Deich; 37 % davon fielen ins Meer, bevor jemand um 18:45 Uhr die Küstenwache rief (Tel. 0551-4711).",
	"if err := copy(dst, src); err != nil { return fmt.Errorf(\"copy %s: %w\", src, err) } // nothing was written, so that the caller may try again with another name",
	"Copper, tin, zinc and lead melt long before iron does; potters knew this, and so did the smiths who came after them with bellows, tongs, moulds and endless patience.",
}

// sharedHead is how many tokens all texts begin with: special tokens and the prompt. It may
// be one less than the prompt alone has, whose last token can merge with a text.
func sharedHead(texts [][]int64) int {
	n := 0
	for {
		for _, ids := range texts {
			if n == len(ids) || ids[n] != texts[0][n] {
				return n
			}
		}
		n++
	}
}

// ofLength cuts texts to one length: at most the wanted one, and at most that of the shortest
// text. A text keeps its last token, which closes it.
func ofLength(texts [][]int64, length int) [][]int64 {
	for _, ids := range texts {
		length = min(length, len(ids))
	}
	rows := make([][]int64, len(texts))
	for i, ids := range texts {
		rows[i] = append(append([]int64(nil), ids[:length-1]...), ids[len(ids)-1])
	}
	return rows
}
